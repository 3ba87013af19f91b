"""What a run was not given it is refused, by the name of the grant, before anything is asked of a database."""

import asyncio
import json
from collections.abc import Collection
from typing import Any

from tests.cases import one_by_one
from tests.unit.data.shop import Shop

from lodger.engine.core.access.grants import DEFAULT, GRANTS, parse
from lodger.engine.node.executors.attempt import Attempt
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome
from lodger.stdlib.calls import CALLS

MAIL = {"to": "ann@shop.example", "subject": "s", "text": "t"}
#: One call of each kind that reads or writes.
CALLED: dict[str, tuple[str, dict[str, Any]]] = {
    "read a set": ("db.find", {"set": "orders"}),
    "write a set": ("db.insert", {"set": "orders", "values": {"state": "x", "items": 1}}),
    "read a collection": ("db.find", {"set": "notes"}),
    "write a collection": ("db.insert", {"set": "notes", "values": {"a": 1}}),
    "read kv": ("kv.get", {"key": "k"}),
    "write kv": ("kv.set", {"key": "k", "value": 1}),
    "mail": ("mail.send", MAIL),
}


async def staff(_tenant_id: str, addresses: Collection[str]) -> Collection[str]:
    return {address for address in addresses if address.endswith("@shop.example")}


def ask(attempt: Attempt, name: str, arguments: dict[str, Any]) -> str:
    """Return the code of the refusal, or ok."""
    reply = asyncio.run(attempt.call(name, json.dumps(arguments)))
    return "ok" if reply.ok else str(json.loads(reply.json)["code"])


def allowed_calls(shop: Shop, *grants: str, calls: dict[str, tuple[str, dict[str, Any]]] = CALLED) -> set[str]:
    """Return the names of the calls that these grants allow."""
    answers = {
        what: ask(shop.attempt(claim={"grants": parse(grants)}, people=staff), *call) for what, call in calls.items()
    }
    assert set(answers.values()) <= {"ok", "denied"}
    return {what for what, answer in answers.items() if answer == "ok"}


def test_by_default_documents_and_keys_are_written_sets_read_and_own_people_mailed(shop: Shop) -> None:
    assert allowed_calls(shop, *DEFAULT.split()) == set(CALLED) - {"write a set"}


def test_without_a_grant_there_is_nothing(shop: Shop) -> None:
    assert allowed_calls(shop) == set()
    assert shop.asked == 0


def test_every_call_of_the_table_is_refused_to_who_holds_nothing(shop: Shop) -> None:
    """A call that is added later and forgotten in the check would answer here."""
    for call in CALLS.values():
        if call.grant:
            arguments = {
                name: SAMPLES[argument.type] for name, argument in call.arguments.items() if not argument.optional
            }
            assert ask(shop.attempt(claim={"grants": parse(())}), call.name, arguments) == "denied", call.name
    kinds = {spec.form.partition(":")[0] for spec in GRANTS} | {"db", ""}
    assert {call.grant.partition(":")[0] for call in CALLS.values()} <= kinds


SAMPLES: dict[str, Any] = {
    "name": "orders", "id": 1, "values": {"state": "x"}, "text": "x", "key": "k", "value": 1, "number": 1, "flag": True,
    "addresses": "a@x.example", "line": "main.js:1", "limit": 1, "names": "x", "pairs": [], "rows": [{"state": "x"}],
}  # fmt: skip


def test_a_refusal_that_is_let_pass_ends_the_run_as_denied(shop: Shop) -> None:
    attempt = shop.attempt(claim={"grants": parse(["sets:read"])})
    reply = asyncio.run(attempt.call("db.delete", json.dumps({"set": "orders", "id": 1})))
    message = json.loads(reply.json)["message"]
    assert message == "this run does not have the grant sets:write:orders"
    assert attempt.verdict(Outcome.SCRIPT_ERROR, ScriptError("CallError", message)) is Outcome.DENIED


def test_a_script_knows_only_the_sets_that_it_may_read(shop: Shop) -> None:
    attempt = shop.attempt(claim={"grants": parse(["sets:read:orders"])})
    assert set(json.loads(attempt.context())["datasets"]) == {"orders"}


@one_by_one(
    ("mail", "grants", "answer"),
    [
        ({}, ["mail"], "ok"),
        ({"to": ["ann@shop.example", "eve@evil.example"]}, ["mail"], "denied"),
        ({"to": ["ann@shop.example", "eve@evil.example"]}, ["mail", "mail:eve@evil.example"], "ok"),
        ({"to": "ANN@SHOP.example"}, ["mail:ann@shop.example"], "ok"),
        ({"to": "eve@sub.evil.example"}, ["mail:*@evil.example"], "denied"),
        ({"to": "eve@evil.example.shop.example.evil"}, ["mail"], "denied"),
        ({"replyTo": "eve@evil.example"}, ["mail"], "denied"),
        ({"cc": "eve@evil.example"}, ["mail"], "denied"),
        ({"bcc": ["eve@evil.example"]}, ["mail"], "denied"),
        ({"replyTo": "bob@shop.example"}, ["mail"], "ok"),
        ({}, ["mail:other@shop.example"], "denied"),
    ],
)
def test_mail_goes_to_own_people_and_named_addresses_only(
    shop: Shop, mail: dict[str, Any], grants: list[str], answer: str
) -> None:
    attempt = shop.attempt(claim={"grants": parse(grants)}, people=staff)
    assert ask(attempt, "mail.send", MAIL | mail) == answer
    assert bool(attempt.journal) is (answer == "ok")
