"""What scripts ask to have sent, whole: real walls, a real node with its senders, SMTP and HTTP on the loopback, real subprocesses."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP
from tests.e2e.ready import lodger
from tests.egress.peer import Peer, opened, thread_of_peers
from tests.store.mail_server import Mailbox

from lodger.engine import Engine
from lodger.engine.core.events import Event
from lodger.engine.egress.signature import verify
from lodger.engine.vault.keyring import Keyring

SCRIPT = """
export default async ({ mail, events, action }) => {
  await mail.send({ to: "ann@acme.example", subject: "Paid", text: "thanks" });
  await mail.send({ to: "gone@acme.example", subject: "Paid", text: "thanks" });
  await events.emit("order.paid", { id: 7, at: new Date(0) });
  if (action.input === "fail") throw new Error("late");
};
"""
DOCS = Path(__file__).resolve().parents[2] / "docs" / "webhooks.md"


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    with thread_of_peers(made):
        yield made


def play(tmp_path: Path, peer: Peer, *, params: Any = None) -> tuple[Mailbox, str, list[Event], Any]:
    """Run one action and wait for what it sends; give the mailbox, the webhook's secret, the events told and the deliveries."""
    keys = tmp_path / "keys"
    Keyring(keys).add()
    box = Mailbox()
    box.refuse_rcpt = {"gone@acme.example": "550 nobody here"}

    async def go() -> tuple[str, list[Event], Any]:
        smtp = await asyncio.get_running_loop().create_server(lambda: SMTP(box), "127.0.0.1", 0)
        port = smtp.sockets[0].getsockname()[1]
        settings = opened(peer, secret_keys=keys, mail_host="127.0.0.1", mail_port=port)
        reported: list[Event] = []
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        wanted = 3 if params == "fail" else 4

        def hear(event: Event) -> None:
            reported.append(event)
            if len([each for each in reported if each.kind in ("delivered", "undelivered", "finished")]) >= wanted:
                loop.call_soon_threadsafe(over.set)

        async with Engine.open(str(tmp_path / "l.db"), settings=settings) as engine:
            await engine.tenants.create("acme", people=["*@acme.example"])
            hook = await engine.webhooks.put("acme", "crm", peer.url("/crm"), events=["*", "lodger.action.failed"])
            assert hasattr(hook, "secret"), "it is new"
            await engine.webhooks.put("@platform", "all", peer.url("/all"), events=["lodger.action.failed"])
            await engine.scripts.put("acme", "s", SCRIPT)
            engine.on_event(hear)
            async with engine.node():
                action = await engine.run_in("acme", "s", 0, params)
                await asyncio.wait_for(over.wait(), 120)
            sent = await engine.actions.deliveries(None, action.id)
        smtp.close()
        await smtp.wait_closed()
        return hook.secret, reported, (action.id, sent)

    secret, reported, rest = asyncio.run(go())
    return box, secret, reported, rest


def test_mails_and_events_leave_are_shown_and_verified_as_the_documentation_says(tmp_path: Path, peer: Peer) -> None:
    box, secret, reported, (action, sent) = play(tmp_path, peer)
    ((to, raw),) = box.got
    assert (to, message_from_bytes(raw)["Subject"]) == (["ann@acme.example"], "Paid")
    (asked,) = peer.asked
    now_s = int(asked.headers["webhook-timestamp"])
    assert verify(secret, asked.headers, asked.body, now_s) == asked.headers["webhook-id"]
    assert json.loads(asked.body)["data"] == {"id": 7, "at": "1970-01-01T00:00:00.000000Z"}
    assert [(each.kind, each.to, each.state, each.error) for each in sent] == [
        ("mail", ("ann@acme.example",), "sent", None),
        ("mail", ("gone@acme.example",), "failed", "550 nobody here"),
        ("webhook", ("crm",), "sent", None),
    ]
    undelivered = [each for each in reported if each.kind == "undelivered"]
    assert [(each.tenant_id, each.action_id, each.details["error"]) for each in undelivered] == [
        ("acme", action, "550 nobody here")
    ]
    shown = lodger("action", "show", "acme", action, "--db", tmp_path / "l.db")
    assert "mail to gone@acme.example (Paid): failed after 1: 550 nobody here" in shown.out
    # The documentation's two programs, run as they stand there on the message as it came.
    parts = DOCS.read_text().split("```")
    programs = {"python": "python3", "js": "node"}
    ran = 0
    for part in parts:
        language, _, source = part.partition("\n")
        if "webhook-signature" not in source or language not in programs or shutil.which(programs[language]) is None:
            continue
        place = tmp_path / f"receiver.{'py' if language == 'python' else 'mjs'}"
        place.write_text(source)
        given = json.dumps({"secret": secret, "headers": asked.headers, "body": asked.body.decode()})
        for altered in (given, given.replace("order.paid", "order.lost")):
            said = subprocess.run(
                [programs[language], place], input=altered, capture_output=True, text=True, timeout=120, check=False
            )
            assert (said.returncode == 0) is (altered == given), said.stderr
        ran += 1
    assert ran >= 1


def test_a_run_that_fails_sends_nothing_but_that_it_failed(tmp_path: Path, peer: Peer) -> None:
    box, secret, _, (action, sent) = play(tmp_path, peer, params="fail")
    assert box.got == []
    everywhere, asked = sorted(peer.asked, key=lambda each: each.line)
    assert (json.loads(everywhere.body)["tenant"], "/all" in everywhere.line) == ("acme", True)
    verify(secret, asked.headers, asked.body, int(asked.headers["webhook-timestamp"]))
    body = json.loads(asked.body)
    assert body["type"] == "lodger.action.failed"
    assert (body["data"]["action"], body["data"]["outcome"], body["data"]["error"]["message"]) == (
        action,
        "script_error",
        "late",
    )
    assert body["data"]["error"]["line"] == 6
    assert {(each.about, each.to) for each in sent} == {("lodger.action.failed", (to,)) for to in ("crm", "@all")}
