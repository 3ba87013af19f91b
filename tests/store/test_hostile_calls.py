"""Every call with every odd text and number, and then the commit: nothing that a script says makes its run our fault."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.store.bench import Bench
from tests.store.spending import Spender

from lodger.engine.node.executors.attempt import Attempt
from lodger.sandbox.outcome import Outcome

TEXTS = (
    "\0", "a\0b", "\ud800", "\udfff\ud800", "x" * 70_000, "\u2028", "=?utf-8?q?a?=", "\r\nBcc: x@y.example", "", " ", "é" * 300,
    "\U0001f600" * 100, "a'; DROP TABLE lodger_kv;--", "\x7f", "__proto__", "{{secret:KEY}}",
)  # fmt: skip
NUMBERS = (0, -1, 1e308, -1e308, 1e-320, 2**63, -(2**63) - 1, 2**200, 10**400, 0.1, True, None, "1", [], {})
URL = "https://a.example/"


def calls_with_text(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "kv.set", {"key": text, "value": 1}
    yield "kv.set", {"key": "k", "value": {text: [text]}}
    yield "kv.get", {"key": text}
    yield "kv.list", {"prefix": text, "after": text}
    yield "kv.delete", {"key": text}
    yield "kv.swap", {"key": "k", "expected": text, "value": text}
    for more in ({"to": [text]}, {"subject": text}, {"text": text}, {"html": text}, {"replyTo": text}):
        yield "mail.send", {"to": ["a@x.example"], "subject": "s", "text": "t"} | more
    yield "events.emit", {"name": text, "data": 1}
    yield "events.emit", {"name": "order.paid", "data": {text: text}}
    for values in ({"text": text}, {text: 1}, {"id": text}):
        yield "db.insert", {"set": "notes", "values": values}
    yield "db.insert", {"set": text, "values": {"a": 1}}
    for more in (
        {"url": text},
        {"method": text},
        {"headers": [["x", text]]},
        {"headers": [[text, "x"]]},
        {"body": text},
    ):
        yield "http.fetch", {"id": 1, "method": "POST", "url": URL, "headers": []} | more
    yield "secrets.read", {"name": text}
    yield text, {}


def calls_with_number(number: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "kv.add", {"key": "n", "amount": number}
    yield "kv.set", {"key": "k", "value": number}
    yield "kv.set", {"key": "k", "value": 1, "ttlSeconds": number}
    yield "kv.list", {"limit": number}
    yield "http.fetch", {"id": number, "method": "GET", "url": URL, "headers": []}
    yield "http.more", {"id": number, "from": number}
    yield "http.abort", {"id": number}
    yield "db.insert", {"set": "notes", "values": {"n": number}}
    yield "db.find", {"set": "notes", "limit": number}
    yield "events.emit", {"name": "order.paid", "data": number}


CASES = {
    "texts": [case for text in TEXTS for case in calls_with_text(text)],
    "numbers": [case for number in NUMBERS for case in calls_with_number(number)],
}


@pytest.mark.parametrize("which", CASES)
def test_whatever_is_said_the_run_ends_as_it_was(bench: Bench, which: str) -> None:
    spender = Spender(bench)
    spender.tenant(**dict.fromkeys(("queries", "rows_read", "rows_written", "mails", "events", "fetches"), 100_000))
    (claim,) = spender.asked()
    answers: list[tuple[str, bool, str]] = []

    async def play(attempt: Attempt) -> None:
        for name, given in CASES[which]:
            reply = await attempt.call(name, json.dumps(given))
            answers.append((name, reply.ok, reply.json))

    spender.through(claim, play)
    ended = bench.engine.actions.get(None, claim.action_id)
    assert ended.outcome is Outcome.OK, ended.error
    refused = [json.loads(said) for _name, ok, said in answers if not ok]
    assert len(refused) > len(answers) / 5
    assert {name for name, ok, _said in answers if ok} >= {"kv.set", "db.insert", "events.emit", "http.fetch"}
    for each in refused:
        assert set(each) <= {"code", "message", "details"}
        assert not any(word in each["message"] for word in ("Error(", "Traceback", "sqlite", "psycopg", ".py"))
    assert bench.scalar("SELECT count(*) FROM lodger_documents") > 0
