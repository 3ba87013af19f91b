"""The database's own wall: with the tenant's condition taken out of every statement, PostgreSQL still keeps tenants apart."""

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from tests.unit.capabilities.feeding import ask, settle
from tests.unit.data.shop import Shop, customers, order, orders

from lodger.engine.data.sets import guard
from lodger.engine.store.drivers.postgresql import row_security
from lodger.engine.store.schema.script_data import documents

#: SQLite has neither roles nor views that check.
pytestmark = pytest.mark.parametrize("kind", ["postgresql"], indirect=True)


def fill(shop: Shop) -> Shop:
    for number, tenant in enumerate(("one", "two"), 1):
        shop.add(customers, {"id": number, "org_id": tenant, "email": f"{tenant}@example.com"})
        shop.add(orders, order(tenant, number, note=f"of {tenant}"))
        attempt = shop.attempt(tenant)
        ask(attempt, "db.insert", set="things", values={"id": "x", "of": tenant})
        ask(attempt, "kv.set", key="k", value=tenant)
        ask(attempt, "kv.set", key=f"of-{tenant}", value=tenant)
        settle(shop, attempt)
    return shop


@pytest.fixture
def shop(shop: Shop) -> Shop:
    return fill(shop)


def seen(shop: Shop) -> tuple[list[str], list[str], list[str]]:
    """Return what tenant one finds of documents, keys and orders."""
    attempt = shop.attempt("one")
    things = sorted(row["of"] for row in ask(attempt, "db.find", set="things")["rows"])
    keys = sorted(each["value"] for each in ask(attempt, "kv.list", prefix="of-"))
    return things, keys, sorted(row["note"] for row in ask(attempt, "db.find", set="orders")["rows"])


FORBIDDEN = [
    "SELECT note FROM orders",
    "SELECT modules FROM lodger_script_versions",
    "SELECT payload FROM lodger_outbox",
    "SELECT * FROM lodger_holds",
    "SELECT * FROM lodger_sealed",
    "UPDATE lodger_data.orders SET org_id = 'two'",
    "UPDATE lodger_data.orders SET audit = 'x'",
    "INSERT INTO lodger_data.orders (id, org_id, state, items) VALUES (77, 'two', 'x', 1)",
    "INSERT INTO lodger_documents VALUES ('two', 'things', 'y', '{}', 0, 0)",
    "UPDATE lodger_documents SET tenant_id = 'two'",
    "TRUNCATE lodger_data.orders",
    "DROP VIEW lodger_data.orders",
    "CREATE TABLE lodger_data.mine (x int)",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_role_may_touch_its_views_and_nothing_else(shop: Shop, statement: str) -> None:
    with shop.engine.connect() as connection, connection.begin():
        guarded = guard.isolated_query(
            lambda inner: inner.execute(sa.text(statement)), "one", shop.datasets, shop.datasets.named("orders")
        )
        with pytest.raises(DBAPIError):
            guarded(connection)


def test_what_belongs_to_others_is_not_there_for_the_role(shop: Shop) -> None:
    def rows(statement: str) -> int:
        with shop.engine.connect() as connection, connection.begin():
            asked = guard.isolated_query(
                lambda inner: inner.execute(sa.text(statement)).rowcount,
                "one", shop.datasets, shop.datasets.named("orders"),
            )  # fmt: skip
            return int(asked(connection))

    assert rows("SELECT * FROM lodger_data.orders") == 1
    assert rows("UPDATE lodger_data.orders SET note = 'x'") == 1
    assert rows("DELETE FROM lodger_data.orders") == 1
    assert rows("SELECT * FROM lodger_documents") == 1
    assert rows("UPDATE lodger_documents SET body = '{}'") == 1
    assert rows("DELETE FROM lodger_kv") == 2


def test_role_and_tenant_end_with_the_question(shop: Shop) -> None:
    assert seen(shop)[0] == ["one"]
    with shop.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT current_user")) == "postgres"
        assert connection.scalar(sa.select(sa.func.count()).select_from(documents)) == 2
        assert connection.scalar(sa.text("SELECT count(*) FROM lodger_data.orders")) == 0


def test_a_view_shows_no_row_that_its_condition_could_tell_of(shop: Shop) -> None:
    """A function in a condition is not asked about rows that the view hides: that is what its barrier is for."""
    with shop.engine.begin() as connection:
        connection.execute(
            sa.text(
                "CREATE FUNCTION tells(x text) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS "
                "$$ BEGIN IF x LIKE '%two%' THEN RAISE EXCEPTION 'seen %', x; END IF; RETURN true; END $$"
            )
        )
    with shop.engine.connect() as connection, connection.begin():
        asked = guard.isolated_query(
            lambda inner: inner.execute(sa.text("SELECT * FROM lodger_data.orders WHERE tells(note)")).all(),
            "one", shop.datasets, shop.datasets.named("orders"),
        )  # fmt: skip
        assert len(asked(connection)) == 1


def test_a_platform_without_views_is_told_and_served(bare: Shop, caplog: pytest.LogCaptureFixture) -> None:
    fill(bare)
    with bare.engine.connect() as connection:
        bare.datasets.stand(None, guard.look(connection, bare.datasets.tables(None)))
    assert seen(bare) == (["one"], ["one"], ["of one"])
    assert "lodger db prepare" in caplog.text
    assert not bare.datasets.wall(None).views


def test_a_view_of_an_older_exposure_is_not_taken_for_the_present_one(shop: Shop) -> None:
    shop.datasets.expose(orders, tenant_column="org_id", read=["id", "note"], name="notes")
    with shop.engine.connect() as connection:
        wall = guard.look(connection, shop.datasets.tables(None))
    assert wall.views == {"orders", "customers"}
    with shop.engine.begin() as connection:
        connection.execute(sa.text("COMMENT ON VIEW lodger_data.orders IS 'lodger 0'"))
        assert guard.look(connection, shop.datasets.tables(None)).views == {"customers"}
    shop.wall()
    assert shop.datasets.wall(None).views == {"orders", "customers", "notes"}
    assert len(ask(shop.attempt("one"), "db.find", set="notes")["rows"]) == 1


def test_a_view_that_is_dropped_is_missed_once(shop: Shop) -> None:
    """A platform drops the views for a migration of its own: one question fails as our fault, the next is answered."""
    with shop.engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA lodger_data CASCADE"))
    with pytest.raises(DBAPIError):
        ask(shop.attempt("one"), "db.find", set="orders")
    assert shop.datasets.unseen == [None]
    with shop.engine.connect() as connection:
        shop.datasets.stand(None, guard.look(connection, shop.datasets.tables(None)))
    assert seen(shop) == (["one"], ["one"], ["of one"])


def trigger(shop: Shop, definer: str) -> None:
    with shop.engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE IF NOT EXISTS heard (note text)"))
        connection.execute(
            sa.text(
                "CREATE OR REPLACE FUNCTION hear() RETURNS trigger LANGUAGE plpgsql "
                f"{definer} AS $$ BEGIN INSERT INTO heard VALUES (current_user); RETURN new; END $$"
            )
        )
        connection.execute(
            sa.text(
                "CREATE OR REPLACE TRIGGER hears AFTER INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION hear()"
            )
        )
    shop.wall()


@pytest.mark.parametrize("definer", ["", "SECURITY DEFINER"])
def test_the_platforms_triggers_have_their_rights(shop: Shop, definer: str) -> None:
    """A trigger with the writer's rights may need more than the role's: such a set is written without the role."""
    trigger(shop, definer)
    assert ("orders" in shop.datasets.wall(None).written) is bool(definer)
    attempt = shop.attempt("one")
    ask(attempt, "db.update", set="orders", id=1, changes={"note": "heard"})
    settle(shop, attempt)
    with shop.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT note FROM heard")) == "postgres"
    assert shop.rows(orders, id=1)[0]["note"] == "heard"


def test_without_a_role_lodgers_own_condition_is_all(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_security.RowSecurity, "is_member", lambda *_: False)
    with shop.engine.connect() as connection:
        assert guard.look(connection, shop.datasets.tables(None)) == guard.DatabaseIsolation()
