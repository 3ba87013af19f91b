"""An attempt answers a script's calls without any sandbox: the whole host side on a real SQLite database."""

import asyncio
import json
from typing import Any

import pytest
from tests.cases import one_by_one
from tests.unit.capabilities.feeding import ask, settle
from tests.unit.data.shop import Shop, customers, instant, order, orders

from lodger.engine.core.access.grants import parse
from lodger.engine.core.errors import Unavailable
from lodger.engine.effects import commit
from lodger.engine.store.schema.script_data import documents, outbox
from lodger.sandbox.job import CallHandlerGone
from lodger.stdlib.calls import CALLS


@pytest.fixture
def shop(shop: Shop) -> Shop:
    shop.add(
        customers,
        {"id": 1, "org_id": "one", "email": "a@one.example"},
        {"id": 2, "org_id": "two", "email": "b@two.example"},
    )
    shop.add(
        orders,
        order("one", 1, total="12.50", customer_id=1, modified=instant("2026-11-01T10:00:00.123456"), serial=2**63 - 1),
        order("one", 2, total="0.10", state="done", items=3),
        order("two", 3, total="99.99", customer_id=2),
    )
    return shop


def test_rows_come_by_the_types_of_their_columns(shop: Shop) -> None:
    row = ask(shop.attempt(), "db.get", set="orders", id=1)
    assert row["serial"] == "9223372036854775807"
    assert row["total"] == "12.50"
    assert row["modified"] == {"$instant": "2026-11-01T10:00:00.123456Z"}
    assert row["items"] == 1
    assert "org_id" not in row
    assert "audit" not in row


def test_a_run_sees_what_it_wrote_and_others_only_after_the_commit(shop: Shop) -> None:
    attempt, other = shop.attempt(), shop.attempt()
    ask(attempt, "db.update", set="orders", id=1, changes={"state": "done"})
    made = ask(attempt, "db.insert", set="orders", values={"state": "done", "items": 7, "total": "1.00"})
    found = ask(attempt, "db.find", set="orders", filter={"state": "done"}, order="-items")["rows"]
    assert [row["items"] for row in found] == [7, 3, 1]
    assert ask(attempt, "db.aggregate", set="orders", filter={"state": "done"}, sum="total")[0]["sum"] == {
        "total": "13.60"
    }
    assert ask(other, "db.count", set="orders", filter={"state": "done"}) == 1
    ask(attempt, "db.update", set="orders", id=made["id"], changes={"note": "mine"})
    assert settle(shop, attempt)[made["id"]] == 4
    assert ask(other, "db.count", set="orders", filter={"state": "done"}) == 3
    assert shop.rows(orders, id=4)[0] | {"total": 1.0} == shop.rows(orders, id=4)[0]
    assert shop.rows(orders, id=4)[0]["note"] == "mine"
    assert shop.rows(orders, id=4)[0]["org_id"] == "one"
    assert shop.rows(orders, id=4)[0]["audit"] == "by the platform"


@pytest.mark.parametrize("column", ["org_id", "audit", "id", "nothing", "__proto__", "constructor"])
def test_mass_assignment_is_refused(shop: Shop, column: str) -> None:
    attempt = shop.attempt()
    for call, more in (
        ("db.insert", {"values": {"state": "x", "items": 1, column: "two"}}),
        ("db.update", {"id": 1, "changes": {column: "two"}}),
    ):
        assert ask(attempt, call, set="orders", **more)[0] == "denied"
    assert not attempt.journal


def test_references_lead_to_ones_own_rows_only(shop: Shop) -> None:
    reported = []
    for number in (2, 77):  # another tenant's, no tenant's
        attempt = shop.attempt()
        ask(attempt, "db.update", set="orders", id=1, changes={"customer_id": number}, line="main.js:4")
        with pytest.raises(commit.EffectRefused) as refused:
            settle(shop, attempt)
        reported.append(
            (refused.value.code, refused.value.message, (refused.value.file, refused.value.line), refused.value.index)
        )
    assert (
        reported[0]
        == reported[1]
        == ("no_such_reference", "orders.customer_id: the referenced row does not exist", ("main.js", 4), 0)
    )


def test_a_new_row_can_be_referred_to_before_it_has_its_number(shop: Shop) -> None:
    attempt = shop.attempt()
    customer = ask(attempt, "db.insert", set="customers", values={"email": "new@one.example"})
    ask(attempt, "db.insert", set="orders", values={"state": "new", "items": 1, "customer_id": customer["id"]})
    assert ask(attempt, "db.find", set="orders", filter={"customer_id": customer["id"]})["rows"][0]["state"] == "new"
    settle(shop, attempt)
    number = shop.rows(customers, email="new@one.example")[0]["id"]
    assert shop.rows(orders, state="new")[0]["customer_id"] == number


def test_documents_need_no_setting_up(shop: Shop) -> None:
    attempt = shop.attempt()
    made = ask(
        attempt,
        "db.insert",
        set="notes",
        values={"text": "x", "at": {"$instant": "2026-11-21T09:00:00+01:00"}, "n": {"deep": [1]}},
    )
    assert made["at"] == {"$instant": "2026-11-21T08:00:00.000000Z"}
    ask(attempt, "db.increment", set="notes", id=made["id"], amounts={"count": 2})
    settle(shop, attempt)
    other = shop.attempt()
    found = ask(
        other,
        "db.find",
        set="notes",
        filter={"at": {"lt": {"$instant": "2026-11-21T08:00:00.000001Z"}}, "n.deep": {"ne": None}},
    )
    assert found["rows"] == [made | {"count": 2}]
    assert ask(shop.attempt("two"), "db.find", set="notes")["rows"] == []
    assert ask(shop.attempt("two"), "db.get", set="notes", id=made["id"]) is None
    assert len(shop.rows(documents)) == 1


def test_additions_of_two_runs_both_count_and_settings_conflict(shop: Shop) -> None:
    one, two, three = shop.attempt(), shop.attempt(), shop.attempt()
    for attempt in (one, two):
        ask(attempt, "db.increment", set="orders", id=1, amounts={"items": 5, "total": "0.10"})
        ask(attempt, "kv.set", key="n", value=9, line="main.js:7")
    ask(three, "kv.get", key="n")
    ask(three, "kv.set", key="n", value=9, line="main.js:7")
    settle(shop, one)
    settle(shop, two)
    assert ask(shop.attempt(), "db.get", set="orders", id=1)["total"] == "12.70"
    with pytest.raises(commit.ConflictFound) as found:
        settle(shop, three)
    assert found.value.line == 7


def test_a_row_that_was_read_must_still_hold_it(shop: Shop) -> None:
    one, two, unseen = shop.attempt(), shop.attempt(), shop.attempt()
    for attempt in (one, two):
        assert ask(attempt, "db.get", set="orders", id=1)["state"] == "open"
        ask(attempt, "db.update", set="orders", id=1, changes={"note": "seen"}, line="main.js:3")
    ask(unseen, "db.update", set="orders", id=1, changes={"state": "forced"})
    settle(shop, one)
    with pytest.raises(commit.ConflictFound) as found:
        settle(shop, two)
    assert (found.value.line, found.value.index) == (3, 0)
    settle(shop, unseen)
    assert shop.rows(orders, id=1)[0]["state"] == "forced"


@one_by_one(
    "bad",
    [
        {"to": "x@example.com\r\nBcc: y@example.com"}, {"to": "x@example.com", "subject": "a\nBcc: y@example.com"},
        {"to": "A, B <x@example.com>"}, {"to": "A <x@example.com> B"}, {"to": '"A\r\nBcc: y@example.com" <x@example.com>'},
        {"to": "=?q?a?= <x@example.com>"}, {"to": "jürgen@example.com"}, {"to": "x@müller..example"},
        {"to": "A <x@example.com, y@z.example>"},
        {"attachments": [{"name": "a", "content": "ü", "type": "text/csv; charset=latin1"}]},
        {"attachments": [{"name": "a", "content": "", "type": "text/csv; boundary=x"}]},
        {"to": "x@example.com, y@example.com"}, {"to": []}, {"to": ["x@example.com"] * 51},
        {"to": "x@"}, {"to": "x"}, {"to": "x@exa mple.com"}, {"to": "x@example.com\n"}, {"replyTo": "x\r\n@example.com"},
        {"subject": "a\u2028b"}, {"subject": "a\u0085b"}, {"text": None}, {"from": "ceo@example.com"}, {"headers": {}},
        {"to": "x@[127.0.0.1]"},
        {"subject": "=?utf-8?q?a=0D=0ABcc:_y@example.com?="}, {"subject": "a =?utf-8?b?eA==?= b"}, {"to": "=?utf-8?q?x?=@example.com"},
        {"replyTo": "=?q?a=0D=0Ab?=@example.com"},
        {"cc": "x@example.com\r\nX: y"}, {"bcc": ["x"]}, {"cc": [f"x{n}@example.com" for n in range(50)]}, {"senderName": "a\nBcc: y"},
        {"senderName": "=?q?a?="}, {"attachments": [{"name": "../a", "content": ""}]},
        {"attachments": [{"name": "a\"; x=\"b", "content": ""}]},
        {"attachments": [{"name": "a", "content": "", "type": "multipart/mixed"}]}, {"attachments": [{"name": "a", "content": 7}]},
        {"attachments": [{"name": "a", "content": "", "type": "text/csv\r\nX: y"}]},
        {"attachments": [{"name": "a", "content": {"$bytes": "?"}}]},
        {"attachments": [{"name": "a", "content": "x" * 600_000}]}, {"attachments": [{"name": "a", "content": ""}] * 11},
        {"attachments": [{"name": "a", "content": "", "path": "/etc/passwd"}]},
        {"attachments": "a"}, {"attachments": [{"name": ".a", "content": ""}]},
        {"to": {"toString": "x@example.com"}}, {"subject": 7}, {"to": "x@example..com"}, {"to": ".x@example.com"},
    ],
)  # fmt: skip
def test_mail_headers_cannot_be_injected(shop: Shop, bad: dict[str, Any]) -> None:
    attempt = shop.attempt()
    code, _ = ask(attempt, "mail.send", **{"to": "x@example.com", "subject": "s", "text": "t"} | bad)
    assert code in {"bad_request", "bad_address"}
    assert not attempt.journal


@one_by_one(
    "text",
    [
        "", "[]", "null", "7", '"x"', "{", "nan", '{"set":NaN}', '{"set":"orders","set":"carts"}', '{"set":"orders","id":Infinity}',
        '{"set":"orders","id":1e999}', "[" * 100_000, '{"a":' * 1000 + "1" + "}" * 1000, '{"set":"or\\u0000ders","id":1}',
        '{"set":"\\ud800","id":1}', '{"set":"orders","id":1,"tenant_id":"two"}', '{"set":7,"id":1}', '{"set":["orders"],"id":1}',
        '{"set":"orders","id":{"valueOf":1}}', '{"set":"orders","id":true}', '{"set":"orders","id":1.5}', '{"set":"orders"}',
        '{"set":"orders","id":' + "9" * 5000 + "}", '{"set":"orders","id":9007199254740993}', '{"set":"orders; DROP TABLE orders","id":1}',
        '{"set":"then","id":"x"}', '{"set":"__proto__","id":"x"}', '{"set":"constructor","id":"x"}',
    ],
)  # fmt: skip
def test_hostile_arguments(shop: Shop, text: str) -> None:
    reply = asyncio.run(shop.attempt().call("db.get", text))
    assert not reply.ok
    assert json.loads(reply.json)["code"] == "bad_request"


def test_budgets_are_counted_and_refuse(shop: Shop) -> None:
    attempt = shop.attempt(budgets={"queries": 2, "rows_written": 1, "mails": 1})
    ask(attempt, "db.count", set="orders")
    ask(attempt, "db.count", set="orders")
    assert ask(attempt, "db.count", set="orders")[0] == "budget_exceeded"
    ask(attempt, "kv.set", key="a", value=1)
    assert ask(attempt, "kv.set", key="b", value=1)[0] == "budget_exceeded"
    assert (
        ask(attempt, "mail.send", to=["a@example.com", "b@example.com"], subject="s", text="t")[0] == "budget_exceeded"
    )
    assert len(attempt.effects()) == 1


def test_a_journal_cannot_fill_the_nodes_memory(shop: Shop) -> None:
    attempt = shop.attempt()
    written = 0
    while ask(attempt, "kv.set", key=f"k{written}", value="x" * 60_000) is None:
        written += 1
    assert written == 139
    assert ask(attempt, "db.count", set="orders") == 2, "reading goes on"


def test_writing_what_was_read_asks_nothing_more(shop: Shop) -> None:
    attempt = shop.attempt()
    rows = ask(attempt, "db.find", set="orders")["rows"]
    for row in rows:
        ask(attempt, "db.update", set="orders", id=row["id"], changes={"state": "seen"})
    assert attempt.counters.used["queries"] == 1
    assert shop.asked == 1


def test_the_table_and_the_handlers_are_one() -> None:
    from lodger.engine.capabilities.arguments import FORMS
    from lodger.engine.capabilities.call_handlers import HANDLERS

    assert set(HANDLERS) == set(CALLS)
    assert {argument.type for call in CALLS.values() for argument in call.arguments.values()} == set(FORMS)


def test_after_the_end_nothing_is_written(shop: Shop) -> None:
    attempt = shop.attempt()
    attempt.close()
    assert ask(attempt, "kv.set", key="a", value=1)[0] == "over"
    assert not attempt.journal


def test_a_mail_is_addressed_as_people_write_it(shop: Shop) -> None:
    attempt = shop.attempt(claim={"grants": parse(["mail:*@example.com", "mail:*@MÜLLER.example"])})
    given = {
        "to": ["Ann Example <ann@example.com>", '"Doe, \\"Jo\\"" <jo@example.com>'], "cc": "a@müller.example",
        "replyTo": "Chef <chef@example.com>",
        "subject": "s", "text": "t",
        "attachments": [
            {"name": "a.csv", "content": "ü", "type": "text/csv"},
            {"name": "b.csv", "content": {"$bytes": "/A=="}, "type": 'TEXT/csv; charset="ISO-8859-1"'},
            {"name": "c.json", "content": "{}", "type": "application/json; charset=utf-8"},
        ],
    }  # fmt: skip
    assert "messageId" in ask(attempt, "mail.send", **given)
    (mail,) = attempt.effects()
    assert (mail["to"], mail["cc"], mail["replyTo"]) == (
        ["ann@example.com", "jo@example.com"], ["a@xn--mller-kva.example"], "chef@example.com",
    )  # fmt: skip
    assert mail["names"] == {
        "ann@example.com": "Ann Example",
        "jo@example.com": 'Doe, "Jo"',
        "chef@example.com": "Chef",
    }
    settle(shop, attempt)
    (row,) = shop.rows(outbox)
    assert [file["type"] for file in json.loads(row["payload"])["attachments"]] == [
        "text/csv; charset=utf-8", "text/csv; charset=iso-8859-1", "application/json; charset=utf-8",
    ]  # fmt: skip


def test_a_database_that_is_away_is_neither_the_scripts_mistake_nor_a_bug_of_ours(shop: Shop) -> None:
    async def away(_work: object) -> Any:
        raise Unavailable("database_unreachable", place="ledger", reason="it was stopped")

    shop.read = away  # type: ignore[assignment,method-assign]  # a database that cannot be reached
    with pytest.raises(CallHandlerGone, match="database_unreachable"):
        ask(shop.attempt(), "db.find", set="orders")
