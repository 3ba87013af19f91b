"""Webhooks out of the outbox: signed, under one id, to the place that was given and no other, tried until they are taken."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.egress.name_server import NameServer
from tests.egress.peer import Asked, Peer, answer, opened, thread_of_peers
from tests.store.mail_server import START_US, SteppedClock

from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import PLATFORM
from lodger.engine.effects import commit
from lodger.engine.effects.effect import Emit
from lodger.engine.effects.journal import Journal
from lodger.engine.egress.signature import NotVerified, verify
from lodger.engine.egress.way_out import WayOut
from lodger.engine.features.webhooks.sender import UNREACHABLE, WebhookSender
from lodger.engine.features.webhooks.webhooks import CreatedWebhook
from lodger.engine.store.queue import outbox as outboxes
from lodger.engine.store.queue.events import matches, subscribers
from lodger.engine.store.schema.script_data import outbox
from lodger.engine.sync import Engine
from lodger.engine.vault.keyring import Keyring

ACTION = "018f0000-0000-7000-8000-{:012}"


class WebhookBench:
    """An engine with a tenant, its receivers, and the sender, on a clock that is moved by hand."""

    def __init__(self, engine: Engine, peer: Peer, way_out: WayOut) -> None:
        self.engine, self.peer, self.way_out, self.clock = engine, peer, way_out, SteppedClock()
        self.sender = WebhookSender(engine.context.database, engine.vault, way_out.send, self.clock)
        self.emitted = 0

    def made(self, name: str = "crm", path: str = "/", **more: Any) -> str:
        """Create a webhook and return its secret."""
        made = self.engine.webhooks.put("acme", name, self.peer.url(path), **more)
        assert isinstance(made, CreatedWebhook)
        return made.secret

    def emit(self, event: str = "order.paid", data: Any = None) -> None:
        """Commit an event, as a step does."""
        self.emitted += 1
        journal = Journal("acme", ACTION.format(self.emitted))
        journal.add(Emit(event, json.dumps(data)))
        with self.engine.context.database.write() as connection:
            commit.apply(connection, journal.write_set(), now_us=self.clock.us)

    def rows(self) -> list[Any]:
        with self.engine.context.database.read() as connection:
            return list(connection.execute(select(outbox).order_by(outbox.c.created_us, outbox.c.n, outbox.c.target)))

    def verified(self, secret: str) -> list[tuple[str, Any]]:
        """Check what arrived as a receiver does; return ids and bodies."""
        now_s = self.clock.us / 1_000_000
        return [(verify(secret, asked.headers, asked.body, now_s), json.loads(asked.body)) for asked in self.peer.asked]


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    with thread_of_peers(made):
        yield made


def posted(tmp_path: Path, peer: Peer, work: Callable[[WebhookBench], Awaitable[None]], url: str | None = None) -> None:
    keys = tmp_path / "keys"
    Keyring(keys).add()
    settings = opened(peer, secret_keys=keys)

    async def go(post: WebhookBench) -> None:
        try:
            await work(post)
        finally:
            await post.sender.stop()
            await asyncio.get_running_loop().shutdown_default_executor()

    way_out = WayOut(settings)
    try:
        with Engine.open(url or str(tmp_path / "ledger.db"), settings=settings) as engine:
            engine.tenants.create("acme")
            engine.tenants.create("other")
            asyncio.run(go(WebhookBench(engine, peer, way_out)))
    finally:
        way_out.stop()


def test_an_event_arrives_signed_once_at_each_that_wants_it(tmp_path: Path, peer: Peer, url: str) -> None:
    async def work(post: WebhookBench) -> None:
        secret = post.made("crm", "/crm", events=["order.*"])
        post.made("all", "/all")
        post.made("none", "/none", events=["ticket.closed"])
        post.engine.webhooks.put("other", "crm", peer.url("/foreign"))
        post.emit(data={"id": 7, "name": "grüße"})
        assert await post.sender.send_due() == 2
        assert await post.sender.send_due() == 0
        assert sorted(asked.line.split()[1] for asked in peer.asked) == ["/all", "/crm"]
        peer.asked = [asked for asked in peer.asked if "/crm" in asked.line]
        ((identity, body),) = post.verified(secret)
        assert body == {
            "type": "order.paid",
            "timestamp": "2026-11-18T11:06:40.000000Z",
            "data": {"id": 7, "name": "grüße"},
        }
        assert {row.state for row in post.rows()} == {"sent"}
        assert identity in {row.message_id for row in post.rows()}
        with pytest.raises(NotVerified):
            verify(secret, peer.asked[0].headers, peer.asked[0].body + b" ", post.clock.us / 1e6)
        with pytest.raises(NotVerified):
            verify(secret, peer.asked[0].headers, peer.asked[0].body, post.clock.us / 1e6 + 301)

    posted(tmp_path, peer, work, url)


def test_a_webhook_of_the_platform_gets_the_events_of_all_tenants(tmp_path: Path, peer: Peer, url: str) -> None:
    async def work(post: WebhookBench) -> None:
        post.made("crm", "/crm")
        made = post.engine.webhooks.put("@platform", "crm", peer.url("/all"), events=["*", "lodger.action.done"])
        assert isinstance(made, CreatedWebhook)
        post.emit(data=7)
        post.engine.webhooks.delete("acme", "crm")
        await post.sender.send_due()
        assert [asked.line.split()[1] for asked in peer.asked] == ["/all"]
        ((_, body),) = post.verified(made.secret)
        assert (body["type"], body["tenant"], body["data"]) == ("order.paid", "acme", 7)
        assert {(row.tenant_id, row.target, row.state) for row in post.rows()} == {
            ("acme", "crm", "failed"),
            ("acme", "@crm", "sent"),
        }, "the platform's copy goes with the tenant's history"
        with post.engine.context.database.read() as connection:
            wanted = list(subscribers(connection, ["acme", "other"], ["lodger.action.done", "lodger.action.failed"]))
        assert sorted(wanted) == [("acme", "lodger.action.done"), ("other", "lodger.action.done")]

    posted(tmp_path, peer, work, url)


def test_a_chat_of_the_platform_reads_whose_text_it_is_and_none_is_markup(tmp_path: Path, peer: Peer) -> None:
    async def work(post: WebhookBench) -> None:
        post.engine.webhooks.put("@platform", "chat", peer.url("/chat"), events=["*"], style="slack")
        for data in ({"text": "<!channel> <https://a.example|sign in>"}, {"n": "<!here>"}):
            post.emit(data=data)
            await post.sender.send_due()
        assert [json.loads(asked.body)["text"] for asked in peer.asked] == [
            "acme: &lt;!channel&gt; &lt;https://a.example|sign in&gt;",
            'acme: order.paid: {"n":"&lt;!here&gt;"}',
        ]

    posted(tmp_path, peer, work)


def test_what_is_not_taken_comes_again_under_the_same_id_signed_anew(tmp_path: Path, peer: Peer) -> None:
    async def work(post: WebhookBench) -> None:
        secret = post.made()
        away = answer(b"", "302 Found", f"Location: {peer.url('/elsewhere')}")
        replies = iter([answer(b"", "500 Oops"), away, b"", answer(b"", "204 Fine")])

        async def reply(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
            writer.write(next(replies))
            await writer.drain()

        peer.paths["/"] = reply
        post.emit()
        pauses, seen = [], []
        for _ in range(4):
            assert await post.sender.send_due() == 1
            seen += post.verified(secret)
            peer.asked.clear()
            (row,) = post.rows()
            if row.next_at_us is not None:
                pauses.append((row.next_at_us - post.clock.us) // 1_000_000)
                post.clock.us = row.next_at_us
        assert pauses == [10, 20, 40]
        assert (row.state, row.attempts, row.last_error) == ("sent", 4, None)
        assert len({identity for identity, _ in seen}) == 1
        assert len(seen) == 4, "a redirect is followed nowhere"

    posted(tmp_path, peer, work)


def test_a_message_to_a_receiver_that_is_gone_is_not_tried_again(tmp_path: Path, peer: Peer) -> None:
    async def work(post: WebhookBench) -> None:
        post.made()
        peer.paths["/"] = answer(b"", "410 Gone")
        post.emit()
        post.emit()
        assert await post.sender.send_due() == 2
        assert [(row.state, row.last_error) for row in post.rows()] == [
            ("failed", "the receiver answered 410"),
            ("failed", "the receiver answered 410"),
        ]
        assert len(peer.asked) == 2
        with post.engine.context.database.read() as connection:
            (reported,) = outboxes.deliveries(connection, "acme", ACTION.format(1))
        assert (reported.kind, reported.to, reported.about, reported.state) == (
            "webhook",
            ("crm",),
            "order.paid",
            "failed",
        )

    posted(tmp_path, peer, work)


@pytest.mark.parametrize("owner", ["acme", PLATFORM])
def test_what_waits_for_a_deleted_webhook_does_not_go_to_a_later_one_of_its_name(
    tmp_path: Path, peer: Peer, owner: str
) -> None:
    async def work(post: WebhookBench) -> None:
        post.engine.webhooks.put(owner, "crm", peer.url("/old"))
        peer.paths["/old"] = answer(b"", "500 Broken")
        post.emit()
        assert await post.sender.send_due() == 1
        post.engine.webhooks.delete(owner, "crm")
        post.engine.webhooks.put(owner, "crm", peer.url("/new"))
        post.clock.us += 3600_000_000
        assert await post.sender.send_due() == 0
        assert [(row.state, row.last_error) for row in post.rows()] == [("failed", "the webhook was deleted")]
        post.emit()
        assert await post.sender.send_due() == 1
        assert [asked.line.split()[1] for asked in peer.asked] == ["/old", "/new"]

    posted(tmp_path, peer, work)


def test_deliveries_and_tests_of_alerts_do_not_tell_what_is_inside(
    tmp_path: Path, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    """A name of the internal network, one that does not exist, and an address look the same to a tenant."""
    zone = {
        "internal.corp.example": [["10.9.8.7"]],
        "half.corp.example": [["10.9.8.7", "192.0.2.1"]],
        "none.corp.example": [[]],
    }
    places = [*zone, "absent.corp.example", "10.9.8.7", "127.0.0.1"]

    async def work(post: WebhookBench) -> None:
        async with NameServer(zone) as names:
            way_out = WayOut(opened(peer, egress_networks="", egress_ports="80", egress_dns=names.place))
            post.sender = WebhookSender(
                post.engine.context.database, post.engine.vault, way_out.send, post.engine.context.clock
            )
            for number, place in enumerate(places):
                post.engine.webhooks.put("acme", f"to{number}", f"http://{place}/secret-path")
                post.engine.webhooks.put("acme", f"page{number}", f"http://{place}/secret-path", events=["none"])
                post.engine.alerts.put("acme", f"page{number}", kinds=["failed"], webhooks=[f"page{number}"])
                post.engine.alerts.test("acme", f"page{number}")
            post.emit()
            while await post.sender.send_due():
                pass
            assert len(post.rows()) == 2 * len(places)
            assert {row.last_error for row in post.rows()} == {f"fetch_refused: {UNREACHABLE}"}
        way_out.stop()

    posted(tmp_path, peer, work)
    assert "internal.corp.example is 10.9.8.7" in caplog.text, "the operator reads why"
    assert "secret-path" not in caplog.text


def test_a_slow_receiver_holds_up_nobody(tmp_path: Path, peer: Peer) -> None:
    async def never(_asked: Asked, reader: asyncio.StreamReader, _writer: object) -> None:
        await reader.read()

    async def work(post: WebhookBench) -> None:
        post.made("slow", "/never", events=["slow.*"])
        post.made("quick", "/quick", events=["quick.*"])
        peer.paths["/never"] = never
        for number in range(30):
            post.emit(f"slow.n{number}")
        marked: asyncio.Queue[str] = asyncio.Queue()
        post.sender = WebhookSender(post.engine.context.database, post.engine.vault, post.way_out.send, post.clock)
        post.sender.on_mark = lambda row, _state, _failure: marked.put_nowait(row.target)
        await post.sender.start()
        for number in range(3):
            post.emit(f"quick.n{number}")
        post.sender.wake()
        assert [await asyncio.wait_for(marked.get(), 120) for _ in range(3)] == ["quick"] * 3
        assert peer.open == 1, "one message of a receiver at a time"

    posted(tmp_path, peer, work)


def test_messages_of_one_receiver_keep_their_order(tmp_path: Path, peer: Peer) -> None:
    async def work(post: WebhookBench) -> None:
        secret = post.made()
        for number in range(25):
            post.emit(data=number)
            post.clock.us += 1
        while await post.sender.send_due():
            pass
        assert [body["data"] for _, body in post.verified(secret)] == list(range(25))

    posted(tmp_path, peer, work)


def test_a_message_that_is_never_taken_costs_those_behind_it_no_try(tmp_path: Path, peer: Peer) -> None:
    async def work(post: WebhookBench) -> None:
        async def reply(asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(b"", "500 Oops") if json.loads(asked.body)["data"] == 0 else answer(b""))
            await writer.drain()

        peer.paths["/"] = reply
        secret = post.made()
        for number in range(3):
            post.emit(data=number)
        for _ in range(12):
            assert await post.sender.send_due() == 3
            post.clock.us = max(row.next_at_us or 0 for row in post.rows())
        assert [(row.state, row.attempts) for row in post.rows()] == [("failed", 12), ("queued", 0), ("queued", 0)]
        peer.asked.clear()
        assert await post.sender.send_due() == 2
        assert [body["data"] for _, body in post.verified(secret)] == [1, 2]
        assert [(row.state, row.attempts) for row in post.rows()[1:]] == [("sent", 1), ("sent", 1)]

    posted(tmp_path, peer, work)


def test_a_new_secret_signs_in_place_of_the_old_one(tmp_path: Path, peer: Peer) -> None:
    async def work(post: WebhookBench) -> None:
        post.engine.context.clock.now_us = lambda: START_US  # type: ignore[method-assign]  # the sender's clock
        old = post.made()
        new = post.engine.webhooks.renew("acme", "crm").secret
        assert new != old
        post.emit()
        await post.sender.send_due()
        assert len(post.verified(new)) == 1
        post.engine.secrets.rotate(new_key=True, drop=True)
        peer.asked.clear()
        post.emit()
        await post.sender.send_due()
        assert len(post.verified(new)) == 1
        with pytest.raises(NotVerified):
            post.verified(old)

    posted(tmp_path, peer, work)


def test_a_tampered_row_sends_nothing(tmp_path: Path, peer: Peer) -> None:
    """The secret is bound to its webhook: swapped rows in the database make messages that cannot be signed."""

    async def work(post: WebhookBench) -> None:
        from lodger.engine.features.webhooks.webhooks import webhooks

        post.made("one")
        post.made("two")
        post.emit()
        with post.engine.context.database.write() as connection:
            sealed = connection.scalar(select(webhooks.c.sealed).where(webhooks.c.name == "one"))
            connection.execute(update(webhooks).where(webhooks.c.name == "two").values(sealed=sealed))
        await post.sender.send_due()
        assert [(row.target, row.state) for row in post.rows()] == [("one", "sent"), ("two", "queued")]
        assert "secret_tampered" in post.rows()[1].last_error

    posted(tmp_path, peer, work)


NO_WEBHOOKS: tuple[tuple[str, str, list[str]], ...] = (
    ("", "https://a.example/", ["*"]), ("a b", "https://a.example/", ["*"]), ("x", "ftp://a.example/", ["*"]),
    ("x", "https://user:pw@a.example/", ["*"]), ("x", "https://A.example/", ["*"]), ("x", "https://a.example/#f", ["*"]),
    ("x", "", ["*"]), ("x", "https://a.example/", []), ("x", "https://a.example/", ["Order"]), ("x", "https://a.example/", ["*.*"]),
    ("x", "https://a.example/", ["a..b"]), ("x", "https://a.example/", [f"e{n}" for n in range(51)]), ("x", "http://127.1/", ["*"]),
    ("x", "http://0x7f.1/", ["*"]),
)  # fmt: skip


def test_what_is_no_webhook_is_refused(tmp_path: Path, peer: Peer) -> None:
    async def work(post: WebhookBench) -> None:
        for name, where, events in NO_WEBHOOKS:
            with pytest.raises(InputError) as refused:
                post.engine.webhooks.put("acme", name, where, events=events)
            assert refused.value.fix, (name, where, events)
        assert post.engine.webhooks.list("acme") == []

    posted(tmp_path, peer, work)


@pytest.mark.parametrize(
    ("patterns", "event", "wanted"),
    [
        (["*"], "order.paid", True), (["order.*"], "order.paid", True), (["order.*"], "order", False), (["order.*"], "orders.paid", False),
        (["order.paid"], "order.paid.twice", False), (["*"], "lodger.action.failed", False), (["lodger.*"], "lodger.action.failed", True),
        (["lodger.action.failed"], "lodger.action.failed", True), ([], "a", False),
    ],
)  # fmt: skip
def test_who_wants_what(patterns: list[str], event: str, wanted: bool) -> None:
    assert matches(patterns, event) is wanted


def test_verifying_refuses_whatever_is_odd() -> None:
    secret = "whsec_" + "A" * 43 + "="
    whole = {"webhook-id": "x", "webhook-timestamp": "1000", "webhook-signature": "v1,abc"}
    for change in ({"webhook-id": ""}, {"webhook-timestamp": "soon"}, {"webhook-timestamp": "9" * 20}, {"webhook-timestamp": "１０００"},
                   {"webhook-timestamp": "-1000"}, {"webhook-signature": "v1,"}, {"webhook-signature": "v0,abc v1a,def"}, {}):  # fmt: skip
        with pytest.raises(NotVerified):
            verify(secret, whole | change, b"{}", 1000)
    with pytest.raises(NotVerified):
        verify("no secret at all", whole, b"{}", 1000)
