"""Tables as platforms really have them, through Lodger and behind every wall: what is asked of a plain one holds of each."""

from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.capabilities.feeding import ask, reader_attempt, settle
from tests.unit.data.oddities import KINDS, PLAYS, TENANT, furnish
from tests.unit.data.shop import Shop

from lodger.engine.effects.commit_errors import EffectRefused

OTHER = TENANT[:-1] + "b"


@pytest.fixture(params=["reported", "trigger"])
def shop(bare: Shop, request: pytest.FixtureRequest) -> Shop:
    furnish(bare, request.param)
    return bare


def test_odd_tables_are_tables(shop: Shop) -> None:
    wall = shop.datasets.wall(None)
    for name, (values, changes, columns, tenant) in PLAYS.items():
        if shop.dialect == "sqlite" and name in ("counted", "shown"):
            continue
        rows = shop.datasets.table(name)
        if shop.dialect == "postgresql":
            assert name in wall.views
            assert (name in wall.written) is (name not in ("shown", "watched")), name
        other = OTHER if tenant == TENANT else "two"
        neighbour = shop.attempt(other)
        ask(neighbour, "db.insert", set=name, values=values)
        settle(shop, neighbour)
        first = shop.attempt(tenant)
        made = ask(first, "db.insert", set=name, values=values)
        assert isinstance(made, dict), (name, made)
        settle(shop, first)
        second = shop.attempt(tenant)
        *_, row = ask(second, "db.find", set=name)["rows"]
        assert row | values == row, name
        key = row[rows.key.name]
        for column in columns:
            assert ask(second, "db.count", set=name, filter={column: row[column]}) == 1
            assert ask(second, "db.find", set=name, order=f"-{column}", limit=1)["rows"][0] == row
        (group,) = ask(second, "db.aggregate", set=name, groupBy=columns, max=columns, filter={rows.key.name: key})
        assert group["group"] == {column: row[column] for column in columns} == group["max"]
        ask(second, "db.update", set=name, id=key, changes=changes)
        settle(shop, second)
        third = shop.attempt(tenant)
        after = ask(third, "db.get", set=name, id=key)
        assert after | changes == after
        assert ask(third, "db.delete", set=name, id=key) is True
        settle(shop, third)
        last = shop.attempt(tenant)
        assert ask(last, "db.get", set=name, id=key) is None
        assert ask(shop.attempt(other), "db.count", set=name) == (2 if name == "shown" else 1)
        reported = ask(reader_attempt(shop, tenant), "db.changes", set=name)["changes"]
        # What its own triggers change besides is a change too.
        assert list(dict.fromkeys(each["kind"] for each in reported if each["id"] == key)) == list(KINDS), name
        theirs = ask(reader_attempt(shop, other), "db.changes", set=name)["changes"]
        assert [each["kind"] for each in theirs if each["kind"] != "update"] == ["insert"], name


def test_the_platforms_triggers_and_rules_have_the_last_word(shop: Shop) -> None:
    for name, values, code in (
        ("watched", {"a": 400}, "constraint"),
        ("watched", {"a": 50}, "not_written"),
        ("filled", {"a": 1000}, "constraint"),
    ):
        attempt = shop.attempt()
        ask(attempt, "db.insert", set="things", values={"id": "kept only with the rest"})
        ask(attempt, "db.insert", set=name, values=values, line="main.js:7")
        with pytest.raises(EffectRefused) as refused:
            settle(shop, attempt)
        assert (refused.value.code, refused.value.file, refused.value.line) == (code, "main.js", 7)
        assert "secret" not in refused.value.message
        seen = shop.attempt()
        assert [ask(seen, "db.count", set=each) for each in (name, "things")] == [0, 0]


def test_a_row_that_is_passed_over_has_no_key_for_others(shop: Shop) -> None:
    """SQLite would tell the key of whichever row came before; a reference to it would lead there."""
    with shop.engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO watched (id, org, a) VALUES (8, 'two', 1)"))
    attempt = shop.attempt()
    ask(attempt, "db.insert", set="watched", values={"a": 50})
    made: Any = ask(attempt, "db.insert", set="watched", values={"a": 1})
    assert made["id"] < 0
    with pytest.raises(EffectRefused):
        settle(shop, attempt)


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_whatever_the_server_calls_it_a_refusal_is_a_refusal(bare: Shop) -> None:
    """What does not fit an index, and what triggers raise under codes of their own, is the run's doing and no fault of ours."""
    bookcase = sa.Table(
        "shelf", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.String(9), nullable=False),
        sa.Column("text", sa.Text, index=True),
    )  # fmt: skip
    with bare.engine.begin() as connection:
        bookcase.metadata.create_all(connection)
        for statement in (
            """CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.text = 'own' THEN RAISE EXCEPTION 'no' USING ERRCODE = 'ORD01'; END IF;
                IF NEW.text = 'seven' THEN RAISE EXCEPTION 'no' USING ERRCODE = '70001'; END IF; RETURN NEW; END $$""",
            "CREATE TRIGGER own BEFORE INSERT ON shelf FOR EACH ROW EXECUTE FUNCTION own()",
        ):
            connection.exec_driver_sql(statement)
    bare.datasets.expose(bookcase, tenant_column="org", write=["text"])
    bare.wall()
    # Random letters, which are not packed to less than an index takes.
    for text in ("".join(chr(0x4E00 + (n * 7919) % 20_000) for n in range(20_000)), "own", "seven"):
        attempt = bare.attempt()
        ask(attempt, "db.insert", set="shelf", values={"text": text}, line="main.js:2")
        with pytest.raises(EffectRefused) as refused:
            settle(bare, attempt)
        assert refused.value.line == 2


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_values_that_no_script_can_hold(bare: Shop) -> None:
    """NaN is like itself, so that its row can be written; an endless date is told, and can be filtered out."""
    table = sa.Table(
        "endless", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.String(9), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True)), sa.Column("ratio", sa.Double), sa.Column("exact", sa.Numeric(9, 2)),
        sa.Column("note", sa.String(9)),
    )  # fmt: skip
    with bare.engine.begin() as connection:
        table.metadata.create_all(connection)
        for statement in (
            "INSERT INTO endless VALUES (1, 'one', now(), 'NaN', 'NaN', 'x'), (2, 'one', NULL, 'Infinity', 1, 'x')",
            "INSERT INTO endless VALUES (3, 'one', 'infinity', 1, 1, 'x'), (4, 'one', '20000-01-01', 1, 1, 'x')",
        ):
            connection.exec_driver_sql(statement)
    bare.datasets.expose(table, tenant_column="org", write=["note", "ratio"])
    bare.wall()
    attempt = bare.attempt()
    found = ask(attempt, "db.find", set="endless", filter={"id": {"lte": 2}})["rows"]
    assert [(row["ratio"], row["exact"]) for row in found] == [("nan", "NaN"), ("inf", "1.00")]
    for row in found:
        ask(attempt, "db.update", set="endless", id=row["id"], changes={"note": "y"})
    settle(bare, attempt)
    assert ask(bare.attempt(), "db.count", set="endless", filter={"note": "y"}) == 2
    for number in (3, 4):
        code, message = ask(bare.attempt(), "db.get", set="endless", id=number)
        assert (code, "infinity" in message) == ("unreadable", True)
    assert ask(bare.attempt(), "db.find", set="endless")[0] == "unreadable"
    near = {"until": {"lt": {"$instant": "9999-01-01T00:00:00Z"}}}
    assert [row["id"] for row in ask(bare.attempt(), "db.find", set="endless", filter=near)["rows"]] == [1]
