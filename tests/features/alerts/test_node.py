"""Alerts of a real node: mail by SMTP, a signed webhook and a chat by HTTP, once each, from one node of two."""

import asyncio
import json
from email import message_from_bytes
from pathlib import Path

import pytest
from aiosmtpd.smtp import SMTP
from tests.egress.peer import Peer, opened, thread_of_peers
from tests.node.harness import SETTINGS, Script, Signals
from tests.store.mail_server import Mailbox

from lodger.engine import Engine
from lodger.engine.core.execution import Claim
from lodger.engine.core.settings import Settings
from lodger.engine.effects.finished import Finished
from lodger.engine.egress.signature import verify
from lodger.engine.features.alerts import service
from lodger.engine.vault.keyring import Keyring
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome


@pytest.fixture(autouse=True)
def quick_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "ROUND_S", 0.02)


def settings_of(peer: Peer, tmp_path: Path, **more: object) -> Settings:
    Keyring(tmp_path / "keys").add()
    return opened(peer, **SETTINGS.model_dump(exclude_defaults=True), secret_keys=tmp_path / "keys", **more)


async def test_a_failure_and_its_recovery_reach_mail_webhook_and_chat_once(tmp_path: Path) -> None:
    peer, box = Peer(), Mailbox()
    message = "out of stock\n\u202e<!channel> <https://evil.example|invoice>"
    turns = iter([Finished(Outcome.SCRIPT_ERROR, error=ScriptError("Error", message, file="main.js", line=3))])

    def answer(_claim: Claim) -> Finished:
        return next(turns, Finished(Outcome.OK, result="1"))

    with thread_of_peers(peer):
        mail = await asyncio.get_running_loop().create_server(lambda: SMTP(box), "127.0.0.1", 0)
        port = mail.sockets[0].getsockname()[1]
        settings = settings_of(peer, tmp_path, mail_host="127.0.0.1", mail_port=port)
        async with mail, Engine.open(str(tmp_path / "ledger.db"), settings=settings) as engine:
            signals = Signals(engine)
            await engine.tenants.create("acme")
            await engine.grants.people("acme", ["pager@acme.example"])
            await engine.scripts.put("acme", "job", "export default () => 1")
            schedule = await engine.schedules.create("acme", "nightly", script="job", rules="every 3600s", retry=1)
            made = await engine.webhooks.put("acme", "crm", peer.url("/crm"), events=["lodger.alert"])
            await engine.webhooks.put("acme", "chat", peer.url("/chat"), events=["lodger.alert"], style="slack")
            assert hasattr(made, "secret"), "it is new"
            await engine.alerts.put("acme", "pager", mail=["pager@acme.example"], webhooks=["crm", "chat"])
            script = Script(answer=answer)
            async with engine.node(script, "n1"), engine.node(script, "n2"):
                for number, kind in enumerate(("failed", "recovered"), 1):
                    await engine.actions.run_now("acme", schedule.id)
                    events = await signals.wait("alert", number)
                    assert (events[-1].details["rule"], events[-1].details["alert"]) == ("pager", kind)
                    await signals.wait("delivered", 3 * number)
        mails = [message_from_bytes(content) for _to, content in box.got]
        assert [str(each["Subject"]) for each in mails] == [
            "[Lodger] acme: schedule nightly failed", "[Lodger] acme: schedule nightly recovered",
        ]  # fmt: skip
        assert r"out of stock\n\u202e<!channel>" in mails[0].get_payload(), "one line of a mail"
        by_path = {path: [each for each in peer.asked if path in each.line] for path in ("/crm", "/chat")}
        for asked in by_path["/crm"]:
            verify(made.secret, asked.headers, asked.body, float(asked.headers["webhook-timestamp"]))
        kinds = [json.loads(each.body)["data"]["alerts"][0]["kind"] for each in by_path["/crm"]]
        assert kinds == ["failed", "recovered"]
        chats = [json.loads(each.body) for each in by_path["/chat"]]
        assert [set(each) for each in chats] == [{"text"}, {"text"}]
        assert "schedule nightly failed" in chats[0]["text"]
        # The script's words make no line, no link and no call in a chat.
        assert r"out of stock\n\u202e&lt;!channel&gt; &lt;https://evil.example|invoice&gt;" in chats[0]["text"]
