"""The client against a real server: the same verbs with the same signatures, the same answers, the same errors."""

import asyncio
import contextlib
import inspect
import select
import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import pytest
from dateutil.rrule import DAILY, rrule, rruleset
from tests.api.every_verb import answers, assert_same_answers
from tests.api.running_api import ONE, RunningApi, running_api
from tests.store.virtual_clock import VirtualClock

from lodger.engine.client import AsyncClient, Client, requests
from lodger.engine.core.errors import Conflict, InputError, NotFound, Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.features import TABLE
from lodger.engine.store.records import Page
from lodger.engine.sync import Engine
from lodger.engine.vault.keyring import Keyring


@pytest.fixture
def lodge(tmp_path: Path) -> Iterator[RunningApi]:
    Keyring(tmp_path / "keys").add()
    with running_api(f"sqlite:///{tmp_path / 'served.db'}", secret_keys=tmp_path / "keys") as made:
        yield made


@pytest.fixture
def client(lodge: RunningApi) -> Iterator[Client]:
    with Client(lodge.url, lodge.token("admin")) as made:
        yield made


def test_every_noun_has_the_same_verbs_with_the_same_signatures(client: Client, lodge: RunningApi) -> None:
    for noun, kind in TABLE.nouns.items():
        theirs, ours = getattr(lodge.engine, noun), getattr(client, noun)
        shell = getattr(AsyncClient("http://x", "t"), noun)
        verbs = {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}
        assert set(dir(ours)) == verbs
        for verb in verbs - {name.partition(".")[2] for name in TABLE.local_only if name.startswith(f"{noun}.")}:
            wanted = inspect.signature(getattr(theirs, verb))
            there = inspect.signature(getattr(ours, verb))
            assert there == wanted, f"{noun}.{verb}"
            awaited = inspect.signature(getattr(shell, verb))
            assert awaited == wanted, f"{noun}.{verb}"
    for verb in ("run_at", "run_in"):
        for one in (Client, AsyncClient):
            mine = inspect.signature(getattr(one, verb)).parameters
            assert list(mine.values()) == list(inspect.signature(getattr(Engine, verb)).parameters.values())


@pytest.fixture
def answers_of_engine(tmp_path: Path, lodge: RunningApi) -> list[tuple[str, str]]:
    settings = Settings(
        sqlite_synchronous="NORMAL", min_interval_s=1, secret_keys=tmp_path / "keys", concurrent_runs=100
    )
    with Engine.open(tmp_path / "here.db", clock=VirtualClock(), settings=settings) as engine:
        return answers(engine, engine)


def test_a_server_answers_what_the_engine_itself_answers(
    client: Client, answers_of_engine: list[tuple[str, str]], lodge: RunningApi
) -> None:
    assert_same_answers(answers(client, lodge.engine), answers_of_engine)
    # Of several ledgers, which tests/features/ledgers asks over HTTP.
    of_ledgers = {"tenants.move", "tenants.place", "ledgers.list"}
    assert {verb for verb, _ in answers_of_engine} | set(TABLE.local_only) == (
        {route.name for route in TABLE.routes} | set(TABLE.local_only)
    ) - of_ledgers


async def test_the_async_client_answers_the_same(lodge: RunningApi, client: Client) -> None:
    """Both send what the same functions make; their signatures are compared above."""

    async with AsyncClient(lodge.url, lodge.token("admin")) as other:
        assert (await other.me())["role"] == "admin"
        assert await other.tenants.create("acme") == client.tenants.get("acme")
        assert await other.scripts.put("acme", "job", ONE) == client.scripts.get("acme", "job")
        assert await other.tenants.list() == client.tenants.list()
        exported = [each async for each in other.audit.export("acme")]
        assert exported == list(client.audit.export("acme"))
        assert exported
        with pytest.raises(NotFound):
            await other.tenants.get("nobody")


def test_errors_are_those_of_the_engine(client: Client) -> None:
    client.tenants.create("acme")
    for call, kind, code in (
        (lambda: client.tenants.get("nobody"), NotFound, "tenant_unknown"),
        (lambda: client.tenants.create("acme"), Conflict, "tenant_exists"),
        (lambda: client.scripts.put("acme", "x", ""), InputError, "script_empty"),
        (lambda: client.schedules.preview("every nonsense"), InputError, "duration_invalid"),
        (lambda: client.schedules.pause("acme", "s", until=datetime(2027, 1, 1)), Exception, None),
        (lambda: client.tokens.first("x"), InputError, "verb_local"),
        (lambda: client.actions.run_now("", "s"), InputError, "name_invalid"),
    ):
        with pytest.raises(kind) as refused:
            call()
        assert code is None or refused.value.code == code
    with pytest.raises(InputError) as reported:
        client.schedules.preview("every nonsense")
    assert reported.value.index == len("every ")
    with pytest.raises(TypeError):
        client.tenants.create()  # type: ignore[call-arg]  # as Python itself would
    with pytest.raises(AttributeError):
        client.tenants.destroy("acme")  # type: ignore[attr-defined]  # there is no such verb


def test_lists_are_whole_unless_a_page_is_asked_for(client: Client, lodge: RunningApi) -> None:
    for number in range(2300):
        with lodge.engine.context.database.write() as connection:
            connection.exec_driver_sql(
                "insert into lodger_tenants (id, name, state, generation, limits, created_us) values (?, 'x', 'active', 1, '{}', 0)",
                (f"t{number:04}",),
            )
    whole = client.tenants.list()
    assert len(whole) == 2300
    assert whole.next is None
    page = client.tenants.list(limit=1500)
    assert (len(page), [tenant.id for tenant in page][-1]) == (1500, "t1499")
    assert isinstance(page, Page)
    assert client.tenants.list(limit=10, cursor=page.next)[0].id == "t1500"


def test_a_request_that_got_lost_is_sent_again_and_done_once(lodge: RunningApi) -> None:
    """A proxy that loses the first answer, after it has let the request through."""
    with Flaky(lodge.port) as flaky, Client(f"http://127.0.0.1:{flaky.port}", lodge.token("admin")) as client:
        client.tenants.create("acme")
        client.scripts.put("acme", "job", ONE)
        flaky.lose = 1
        asked = client.run_in("acme", "job", "90s")
        assert flaky.lose == 0
        assert [action.id for action in lodge.engine.actions.list("acme")] == [asked.id]
        flaky.lose = 1
        with pytest.raises(Unavailable) as lost:
            client.tokens.create("x", "admin")
        assert lost.value.code == "server_unreachable", "a secret is not asked for twice"


async def test_a_live_stream_that_breaks_is_continued(lodge: RunningApi) -> None:
    """Whatever happens while the connection is cut is told once, in both clients."""
    lodge.furnish()
    actions = lodge.engine.actions
    with Flaky(lodge.port) as flaky:
        url, token = f"http://127.0.0.1:{flaky.port}", lodge.token("viewer", "acme")
        with Client(url, token) as client:
            asked = actions.run_now("acme", "s")
            one = client.live("acme", asked.id)
            assert next(one) == actions.get(None, asked.id)
            flaky.cut()
            actions.cancel(None, asked.id)
            assert list(one) == [actions.get(None, asked.id)]

        async with AsyncClient(url, token) as other:
            seen = other.live("acme")
            begun = asyncio.ensure_future(anext(seen))
            while not begun.done():
                first = await asyncio.to_thread(actions.run_now, "acme", "s")
                await asyncio.wait({begun}, timeout=0.2)
            made = [begun.result().id]
            for _ in range(3):
                while made[-1] != first.id:
                    made.append((await anext(seen)).id)
                flaky.cut()
                first = await asyncio.to_thread(actions.run_now, "acme", "s")
            assert len(set(made)) == len(made)
            await seen.aclose()


class Flaky:
    """Passes connections on; loses the answers of as many as it is told."""

    def __init__(self, port: int) -> None:
        self.behind, self.lose = port, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.threads: list[threading.Thread] = []
        self.open: list[socket.socket] = []

    def cut(self) -> None:
        """End all connections."""
        for here in self.open:
            with contextlib.suppress(OSError):
                here.shutdown(socket.SHUT_RDWR)
        self.open.clear()

    def __enter__(self) -> Self:
        self.accepting = threading.Thread(target=self._accept)
        self.accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for thread in [self.accepting, *self.threads]:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self.listening.accept()
            except OSError:
                return
            self.open.append(here)
            thread = threading.Thread(target=self._pass, args=(here,))
            thread.start()
            self.threads.append(thread)

    def _pass(self, here: socket.socket) -> None:
        with closing(here), socket.create_connection(("127.0.0.1", self.behind)) as there:
            while True:
                for readable in select.select([here, there], [], [])[0]:
                    data = readable.recv(65536)
                    if readable is there and data and self.lose:
                        self.lose -= 1
                        return
                    if not data:
                        return
                    (there if readable is here else here).sendall(data)


async def test_an_endless_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that lies sends a small body that unpacks to a large one, and never ends it."""
    monkeypatch.setattr(requests, "MAX_ANSWER_BYTES", 1 << 20)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def lie() -> None:
            for _ in range(2):
                connection, _address = server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65_536)
                    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n")
                    while True:
                        connection.sendall(packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_SYNC_FLUSH))

        liar = threading.Thread(target=lie)
        liar.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

        with Client(url, "token") as client, pytest.raises(Unavailable, match="more than 1048576 bytes"):
            client.tenants.get("acme")
        with pytest.raises(Unavailable, match="more than 1048576 bytes"):
            async with AsyncClient(url, "token") as client:
                await client.tenants.get("acme")
        liar.join()


def test_pages_without_an_end_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MAX_PAGES", 3)
    asking = requests.call("http://127.0.0.1:1", TABLE.operations["scripts.list"], ("acme",), {})
    next(asking)
    empty = requests.Answer(200, b'{"items": [], "next": "more"}', None)
    for _ in range(3):
        asking.send(empty)
    with pytest.raises(Unavailable, match="lists more than"):
        asking.send(empty)


@pytest.mark.parametrize("name", ["..", ".", "", "acme/schedules/s", "a\\b", "../schedules/s"])
def test_a_name_never_turns_into_another_address(client: Client, lodge: RunningApi, name: str) -> None:
    """What would climb in the path, or be two segments of it, deletes something else: it is not sent."""
    lodge.furnish()
    for call in (
        lambda: client.schedules.delete("acme", name),
        lambda: client.tenants.delete(name),
        lambda: client.scripts.put("acme", name, ONE),
        lambda: client.live(name),
        lambda: client.live("acme", name),
    ):
        with pytest.raises(InputError) as refused:
            call()
        assert refused.value.code == "name_invalid"
    assert lodge.engine.schedules.get("acme", "s").state == "armed"


def test_nobody_at_home(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with Client(url, "lodger_x") as client, pytest.raises(Unavailable) as refused:
            client.tenants.list()
    assert refused.value.code == "server_unreachable"
    for wrong in ("ftp://x", "localhost", "http://", "http://a:b@c", "http://x?y=1"):
        with pytest.raises(InputError):
            Client(wrong, "t")
    with pytest.raises(InputError):
        Client("http://x", "to\nken")


def test_objects_of_dateutil_travel_as_text(client: Client) -> None:
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    daily, first = rrule(DAILY, dtstart=start), rruleset()
    first.rdate(start + timedelta(days=1))
    shown = client.schedules.preview([daily, "0 12 * * *"], exclusions=first, after=start, n=3).slots
    assert [slot - start for slot in shown] == [timedelta(hours=3), timedelta(hours=27), timedelta(days=2)]
