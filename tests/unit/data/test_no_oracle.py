"""Foreign and absent rows cannot be distinguished: neither by answer, code or text, nor by the statements to the database."""

import json
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.capabilities.feeding import ask
from tests.unit.data.shop import NOW_US, Shop, customers, order, orders

from lodger.engine.effects import commit
from lodger.engine.effects.commit_errors import NotApplied

#: Rows of another tenant's, and rows without a tenant.
FOREIGN, ABSENT = 7, 8


@pytest.fixture
def shop(shop: Shop) -> Shop:
    for number, tenant in ((1, "one"), (FOREIGN, "two")):
        shop.add(customers, {"id": number, "org_id": tenant, "email": f"{number}@example.com"})
        shop.add(orders, order(tenant, number, customer_id=number, note="n"))
        attempt = shop.attempt(tenant)
        ask(attempt, "db.insert", set="things", values={"id": str(number), "a": number})
        ask(attempt, "kv.set", key=str(number), value=number)
        with shop.engine.begin() as connection:
            commit.apply(connection, attempt.journal, now_us=NOW_US)
    return shop


ASKED: list[tuple[str, dict[str, Any]]] = [
    ("db.get", {"set": "orders", "id": "ID"}),
    ("db.get", {"set": "orders", "id": "ID", "check": True}),
    ("db.get", {"set": "orders", "id": "ID", "include": "customer"}),
    ("db.get", {"set": "things", "id": "TEXT"}),
    ("db.find", {"set": "orders", "filter": {"id": "ID"}}),
    ("db.find", {"set": "orders", "filter": {"customer_id": "ID"}, "include": "customer"}),
    ("db.find", {"set": "orders", "filter": {"customer.id": "ID"}}),
    ("db.find", {"set": "orders", "filter": {"not": {"id": {"in": ["ID", 1]}}}}),
    ("db.find", {"set": "orders", "order": "-id", "filter": {"id": {"gte": "ID"}}}),
    ("db.count", {"set": "orders", "filter": {"id": "ID"}}),
    ("db.aggregate", {"set": "orders", "filter": {"id": "ID"}, "max": "id", "groupBy": "customer_id"}),
    ("db.update", {"set": "orders", "id": "ID", "changes": {"state": "x"}}),
    ("db.update", {"set": "orders", "id": "ID", "changes": {"customer_id": 1}}),
    ("db.update", {"set": "orders", "id": 1, "changes": {"customer_id": "ID"}}),
    ("db.insert", {"set": "orders", "values": {"state": "x", "items": 1, "customer_id": "ID"}}),
    ("db.insertMany", {"set": "orders", "rows": [{"state": "x", "items": 1, "customer_id": "ID"}] * 2}),
    ("db.increment", {"set": "orders", "id": "ID", "amounts": {"items": 1}}),
    ("db.increment", {"set": "orders", "id": 1, "amounts": {"customer_id": 0}}),
    ("db.delete", {"set": "orders", "id": "ID"}),
    ("db.updateMany", {"set": "orders", "filter": {"id": "ID"}, "changes": {"state": "x"}}),
    ("db.updateMany", {"set": "orders", "filter": {"id": 1}, "changes": {"customer_id": "ID"}}),
    ("db.deleteMany", {"set": "orders", "filter": {"id": {"in": ["ID"]}}}),
    ("db.upsert", {"set": "customers", "values": {"email": "ID@example.com"}, "on": "email"}),
    ("db.upsert", {"set": "things", "values": {"id": "TEXT", "a": 2}}),
    ("db.insert", {"set": "things", "values": {"id": "TEXT", "a": 2}}),
    ("db.update", {"set": "things", "id": "TEXT", "changes": {"a": 2}}),
    ("db.increment", {"set": "things", "id": "TEXT", "amounts": {"a": 2}}),
    ("db.delete", {"set": "things", "id": "TEXT"}),
    ("kv.get", {"key": "TEXT"}),
    ("kv.set", {"key": "TEXT", "value": 1}),
    ("kv.add", {"key": "TEXT", "amount": 1}),
    ("kv.swap", {"key": "TEXT", "expected": None, "value": 1}),
    ("kv.delete", {"key": "TEXT"}),
    ("kv.list", {"prefix": "TEXT"}),
]


def reported(shop: Shop, number: int, name: str, asked: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return what a script is told of a number, at its call and at the commit, and what the database is asked meanwhile."""
    text = json.dumps(asked).replace('"ID"', str(number)).replace("ID@", f"{number}@").replace("TEXT", str(number))
    said: list[str] = []

    def hear(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        said.append(statement)

    sa.event.listen(shop.engine, "before_cursor_execute", hear)
    attempt = shop.attempt()
    answers = [json.dumps(ask(attempt, name, **json.loads(text)))]
    connection = shop.engine.connect()
    try:
        commit.apply(connection, attempt.journal, now_us=NOW_US)
    except NotApplied as refused:
        answers.append(f"{refused.code}: {refused.message}")
    finally:
        connection.rollback()
        connection.close()
        sa.event.remove(shop.engine, "before_cursor_execute", hear)
    # Numbers that a sequence has given go on; ids of one and of the other differ in nothing else.
    return [answer.replace(str(number), "ID") for answer in answers], said


def test_foreign_and_absent_are_one(shop: Shop) -> None:
    for name, asked in ASKED:
        foreign, absent = (reported(shop, number, name, asked) for number in (FOREIGN, ABSENT))
        assert foreign[0] == absent[0] or "insert" in name.lower() or name == "db.upsert", (name, asked)
        assert [len(answers) for answers in (foreign[0], absent[0])] in ([1, 1], [2, 2]), (name, asked)
        assert foreign[0][1:] == absent[0][1:], (name, asked)
        assert foreign[1] == absent[1], (name, asked)


def test_ones_own_is_told_apart(shop: Shop) -> None:
    """So that the test above can see at all."""
    apart = [
        name
        for name, asked in ASKED
        if (mine := reported(shop, 1, name, asked))[0] != (none := reported(shop, ABSENT, name, asked))[0]
        or mine[1] != none[1]
    ]
    assert len(apart) > len(ASKED) / 2


HIDDEN = {
    "CREATE UNIQUE INDEX everybodys ON people (email)": {"email"},
    "CREATE UNIQUE INDEX everybodys ON people (email, nick)": {"email", "nick"},
    "CREATE UNIQUE INDEX everybodys ON people (lower(email))": {"email", "nick", "age"},
    "CREATE UNIQUE INDEX everybodys ON people (email) WHERE age > 3": {"email"},
    "CREATE UNIQUE INDEX everybodys ON people (org, email)": set(),
    "CREATE INDEX everybodys ON people (email)": set(),
}


@pytest.mark.parametrize("rule", HIDDEN)
def test_uniqueness_that_only_the_database_knows_of(bare: Shop, rule: str, caplog: pytest.LogCaptureFixture) -> None:
    people = sa.Table(
        "people", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.String(9), nullable=False),
        sa.Column("email", sa.String(40)), sa.Column("nick", sa.String(40)), sa.Column("age", sa.Integer),
    )  # fmt: skip
    written = {"email", "nick", "age"}
    with bare.engine.begin() as connection:
        people.metadata.create_all(connection)
        connection.execute(sa.text(rule))
        connection.execute(people.insert().values(id=1, org="two", email="a@x", nick="a"))
    bare.datasets.expose(people, tenant_column="org", write=sorted(written))
    bare.wall()
    assert bare.datasets.table("people").writable == written - HIDDEN[rule]
    for column in written:
        answer = ask(bare.attempt(), "db.insert", set="people", values={column: 1 if column == "age" else "a@x"})
        assert answer[0] == "denied" if isinstance(answer, tuple) else column not in HIDDEN[rule], (column, answer)
    warned = [record.message for record in caplog.records if "unique over all tenants" in record.message]
    assert len(warned) == bool(HIDDEN[rule])
    if HIDDEN[rule]:
        named = bare.datasets.expose(
            people, tenant_column="org", write=sorted(written), name="named", allow_unique=["everybodys"]
        )
        bare.wall()
        assert bare.datasets.table(named.name).writable == written
