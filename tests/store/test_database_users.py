"""Users of one PostgreSQL server: what a superuser prepares gives no user more rights, and two Lodgers keep apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from tests.databases.server import Server

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.data.changes.prepare import printed
from lodger.engine.data.sets import guard
from lodger.engine.sync import Engine

USERS = ("shop", "other", "stranger")
READS = """
export default async ({ db }) => {
  const found = [];
  for await (const each of db.orders.each({})) found.push(each.price);
  return found;
};
"""


@dataclass
class Users:
    """A database with users who are no superusers, and a schema of each."""

    server: Server
    name: str

    def url(self, user: str, schema: str | None = None) -> str:
        path = f"&options=-csearch_path%3D{schema}" if schema else ""
        return self.server.url(self.name).replace("postgres@", f"{user}@") + path

    @contextmanager
    def connection(self, user: str, schema: str | None = None) -> Iterator[sa.Connection]:
        engine = sa.create_engine(self.url(user, schema).replace("postgresql:", "postgresql+psycopg:"))
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()

    def run(self, user: str, *texts: str) -> list[Any]:
        found: list[Any] = []
        with self.connection(user) as connection:
            for text in texts:
                result = connection.exec_driver_sql(text.replace("%", "%%"))
                found = result.scalars().all() if result.returns_rows else []
        return list(found)

    @contextmanager
    def lodger(self, user: str, schema: str | None = None, *, price: int = 1) -> Iterator[Engine]:
        """Open the ledger of a user, with a table of orders beside it."""
        metadata = sa.MetaData()
        orders = sa.Table(
            "orders", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.String(40)),
            sa.Column("price", sa.Integer),
        )  # fmt: skip
        with Engine.open(self.url(user, schema), settings=Settings(min_interval_s=1)) as engine:
            with engine.context.database.write() as connection:
                metadata.create_all(connection)
                connection.execute(sa.insert(orders), {"id": 1, "org": "acme", "price": price})
            engine.tenants.create("acme")
            engine.expose(orders, tenant_column="org", write=["price"], feed="trigger")
            yield engine


@pytest.fixture
def users(server: Server) -> Iterator[Users]:
    made = Users(server, server.database(empty=True))
    for user in USERS:
        made.run("postgres", f"CREATE ROLE {user} LOGIN CREATEROLE", f"CREATE SCHEMA AUTHORIZATION {user}")
    made.run("postgres", "GRANT CREATE ON SCHEMA public TO PUBLIC", f'GRANT CREATE ON DATABASE "{made.name}" TO PUBLIC')
    yield made
    roles = made.run("postgres", "SELECT rolname FROM pg_roles WHERE rolname LIKE 'lodger\\_script\\_%'")
    for role in (*(each for each in roles if each != "lodger_script_postgres"), *USERS):
        made.run("postgres", f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")
    server.drop(made.name)


def by_the_superuser(users: Users, engine: Engine) -> None:
    """Run what ``lodger db prepare --sql`` prints, as a database administrator does."""
    with engine.context.database.read() as connection:
        made = printed(engine.datasets, None, connection)
    users.run("postgres", *made)


def test_what_a_superuser_prepares_belongs_to_lodgers_own_user(users: Users) -> None:
    with users.lodger("shop") as engine:
        by_the_superuser(users, engine)
        owners = users.run(
            "postgres",
            "SELECT DISTINCT pg_get_userbyid(c.relowner) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname LIKE 'lodger\\_data%' UNION SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname "
            "LIKE 'lodger\\_data%' UNION SELECT pg_get_userbyid(proowner) FROM pg_proc WHERE prosecdef",
        )
        assert owners == ["shop"]
        callers = "SELECT proname FROM pg_proc WHERE prosecdef AND has_function_privilege('stranger', oid, 'EXECUTE')"
        assert users.run("postgres", callers) == []
        with engine.context.database.read() as connection:
            wall = guard.look(connection, engine.datasets.tables(None))
        assert (wall.role, wall.views, wall.written) == (True, {"orders"}, {"orders"}), "its own user acts as the role"
        by_the_superuser(users, engine)


def test_a_role_that_lodgers_user_may_not_act_as_is_said(users: Users) -> None:
    table = sa.Table(
        "parcels", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.String(40))
    )
    with users.lodger("shop") as engine:
        by_the_superuser(users, engine)
        assert engine.problems() == []
        granters = users.run("postgres", "SELECT pg_get_userbyid(grantor) FROM pg_auth_members "
                                         "WHERE roleid = 'lodger_script_shop'::regrole AND member = 'shop'::regrole")  # fmt: skip
        for granter in granters:
            users.run("postgres", f"REVOKE lodger_script_shop FROM shop GRANTED BY {granter}")
        assert engine.problems() == ["row_security_unused"]
        users.run("postgres", "GRANT lodger_script_shop TO shop")
        assert engine.problems() == []
        engine.expose(table, tenant_column="org", database=f"postgresql://nobody@127.0.0.1:1/{users.name}")
        assert engine.problems() == ["database_unreachable"]


ATTACK = "text AS owner, 'x' AS key FROM new_rows; ALTER ROLE {user} SUPERUSER; SELECT 'x'::text"


@pytest.mark.parametrize("user", ["shop", "stranger"])
def test_a_trigger_with_sql_in_its_arguments_gives_no_rights(users: Users, user: str) -> None:
    with users.lodger("shop") as engine:
        by_the_superuser(users, engine)
        (function,) = users.run(
            "postgres", "SELECT oid::regprocedure::text FROM pg_proc WHERE proname = 'lodger_changes'"
        )
        call = function.replace("()", "")
        for owner_type, key_type in ((ATTACK.format(user=user), "text"), ("text", ATTACK.format(user=user))):
            quoted = [each.replace("'", "''") for each in ("s", "id", "id", owner_type, key_type)]
            arguments = ", ".join(f"'{each}'" for each in quoted)
            with pytest.raises(DBAPIError):
                users.run(
                    user,
                    "CREATE TABLE bait (id text)",
                    "CREATE TRIGGER t AFTER INSERT ON bait REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT "
                    f"EXECUTE FUNCTION {call}({arguments})",
                    "INSERT INTO bait VALUES ('a')",
                )
        assert users.run("postgres", f"SELECT rolname FROM pg_roles WHERE rolsuper AND rolname = '{user}'") == []


def test_a_type_whose_text_is_code_runs_with_no_superusers_rights(users: Users) -> None:
    """A column's own cast to text runs inside the function, which has its owner's rights."""
    with users.lodger("shop") as engine:
        by_the_superuser(users, engine)
        (function,) = users.run(
            "postgres", "SELECT oid::regprocedure::text FROM pg_proc WHERE proname = 'lodger_changes'"
        )
        with pytest.raises(DBAPIError, match=r"must be superuser|permission denied"):
            users.run(
                "shop",
                "CREATE TYPE evil AS (x int)",
                "CREATE FUNCTION public.speak(evil) RETURNS text LANGUAGE plpgsql AS "
                "$$ BEGIN ALTER ROLE shop SUPERUSER; RETURN 'x'; END $$",
                "CREATE CAST (evil AS text) WITH FUNCTION public.speak(evil)",
                "CREATE TABLE bait (id evil)",
                "CREATE TRIGGER t AFTER INSERT ON bait REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT "
                f"EXECUTE FUNCTION {function.replace('()', '')}('s', 'id', 'id', 'text', 'text')",
                "INSERT INTO bait VALUES (ROW(1))",
            )


HEARS = """
CREATE FUNCTION pg_temp.hear() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO heard VALUES (current_user); RETURN NEW; END $$
"""


def test_a_temporary_table_of_the_scripts_role_is_not_taken_for_lodgers(users: Users) -> None:
    with users.lodger("shop") as engine:
        engine.prepare()
        ledger = users.run("postgres", "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                                       "WHERE c.relname = 'lodger_kv'")[0]  # fmt: skip
        counters = ", ".join(f"{each} bigint DEFAULT 0" for each in ("kept_bytes", "history_bytes", "audit_bytes"))
        with users.connection("shop") as connection:
            for text in (
                f"SET LOCAL search_path = {ledger}",
                "CREATE TEMP TABLE heard (who text)",
                "GRANT ALL ON heard TO PUBLIC",
                "SET LOCAL ROLE lodger_script_shop",
                f"CREATE TEMP TABLE lodger_storage (tenant_id text PRIMARY KEY, {counters})",
                HEARS,
                "CREATE TRIGGER t BEFORE INSERT ON lodger_storage FOR EACH ROW EXECUTE FUNCTION pg_temp.hear()",
                "GRANT ALL ON lodger_storage TO PUBLIC",
                "SELECT set_config('lodger.tenant', 'acme', true)",
                f"INSERT INTO {ledger}.lodger_kv (tenant_id, scope, key, value, updated_us) VALUES ('acme', '', 'k', '1', 0)",
            ):
                connection.exec_driver_sql(text)
            assert connection.exec_driver_sql("SELECT who FROM pg_temp.heard").scalars().all() == []


def test_two_ledgers_in_one_database_read_and_write_their_own_tables(users: Users) -> None:
    with users.lodger("shop", "shop", price=1) as mine, users.lodger("other", "other", price=777) as theirs:
        for engine in (mine, theirs, mine):
            engine.prepare()
        for engine, price in ((mine, 1), (theirs, 777)):
            with engine.context.database.read() as connection:
                wall = guard.look(connection, engine.datasets.tables(None))
            assert wall.views == {"orders"}
            ran = engine.scripts.dry_run("acme", "draft", source=READS)
            assert (ran.outcome, ran.result) == ("ok", [price]), ran.error
    with pytest.raises(DBAPIError, match="permission denied"):
        users.run("shop", "SET ROLE lodger_script_other")


def test_another_lodgers_objects_are_refused_and_left_alone(users: Users) -> None:
    """Both take tables of one schema of the platform's database."""
    shared = sa.Table(
        "parcels", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.String(40))
    )
    users.run(
        "postgres", "CREATE TABLE parcels (id integer PRIMARY KEY, org varchar(40))", "GRANT ALL ON parcels TO PUBLIC"
    )
    with users.lodger("shop", "shop") as mine, users.lodger("other", "other") as theirs:
        for engine, user in ((mine, "shop"), (theirs, "other")):
            engine.expose(shared, tenant_column="org", database=users.url(user, "public"))
        mine.prepare()
        with pytest.raises(Unavailable) as refused:
            theirs.prepare()
        assert "belongs to user shop" in str(refused.value.why)
        (place,) = theirs.datasets.databases
        with place.read() as connection:
            made = printed(theirs.datasets, place, connection)
            assert guard.look(connection, theirs.datasets.tables(place), ledger=False).views == set()
        with pytest.raises(DBAPIError, match="belongs to user"):
            users.run("postgres", *made)


def test_row_security_of_the_platforms_own_is_said_and_told_the_tenant(users: Users) -> None:
    reads = "export default async ({ db }) => { await db.orders.update(1, { price: 5 }); return db.orders.count({}) }"
    settings = Settings(min_interval_s=1, profile="trusted", check_scripts=False)
    with users.lodger("shop") as engine:
        assert engine.problems() == []
        users.run(
            "shop",
            "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE orders FORCE ROW LEVEL SECURITY",
            "CREATE POLICY mine ON orders USING (org = current_setting('app.tenant', true))",
        )
        assert (engine.problems(), engine.unready()) == (["row_security_hides"], [])
        engine.tenants.edit("acme", name="Acme")
        engine.grants.give("acme", "sets:write")
        engine.scripts.put("acme", "job", reads, force=True)
    for prepared in (False, True):
        with Engine.open(users.url("shop"), settings=settings) as engine:
            table = sa.Table(
                "orders", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.String(40)),
                sa.Column("price", sa.Integer),
            )  # fmt: skip
            engine.expose(table, tenant_column="org", write=["price"], tenant_setting="app.tenant")
            if prepared:
                by_the_superuser(users, engine)
            assert engine.problems() == []
            tried = engine.scripts.dry_run("acme", "job")
            assert (tried.outcome, tried.result) == ("ok", 1), tried.error
            with engine.node():
                run = engine.run_in("acme", "job", 0)
                for change in engine.live("acme", run.id):
                    if getattr(change, "state", "") in {"done", "failed"}:
                        break
            assert engine.actions.get("acme", run.id).state == "done", engine.actions.get("acme", run.id).error
    with pytest.raises(InputError, match="session variable"):
        engine.expose(table, tenant_column="org", tenant_setting="no dot")


def test_the_least_rights_that_the_page_on_security_names(users: Users) -> None:
    """A schema of its own for the ledger, and on the platform's table what scripts may do: no superuser, no CREATEROLE."""
    users.run("postgres", "ALTER ROLE other NOCREATEROLE")
    users.run(
        "shop",
        "CREATE TABLE shop.orders (id integer PRIMARY KEY, org text, price integer)",
        "INSERT INTO shop.orders VALUES (1, 'acme', 1)",
        "GRANT USAGE ON SCHEMA shop TO other",
        "GRANT SELECT ON shop.orders TO other",
        "GRANT UPDATE (price) ON shop.orders TO other",
    )
    source = "export default async ({ db, kv }) => { await kv.set('a', 1); await db.orders.update(1, { price: 5 }); return 1 }"
    with Engine.open(users.url("other", "other"), settings=Settings(profile="trusted", check_scripts=False)) as engine:
        table = sa.Table(
            "orders", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.String),
            sa.Column("price", sa.Integer),
            schema="shop",
        )  # fmt: skip
        engine.expose(table, tenant_column="org", write=["price"], insert=False, delete=False)
        engine.tenants.create("acme", grants=["sets:write"])
        engine.scripts.put("acme", "job", source)
        with engine.node():
            run = engine.run_in("acme", "job", 0)
            for change in engine.live("acme", run.id):
                if getattr(change, "state", "") in {"done", "failed"}:
                    break
        assert engine.actions.get("acme", run.id).state == "done", engine.actions.get("acme", run.id).error
    assert users.run("shop", "SELECT price FROM shop.orders") == [5]
