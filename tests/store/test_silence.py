"""A network that is cut, or that accepts everything and answers nothing: callers get an error in time."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as first
from typing import Any, TypeVar

import psycopg
import pytest
import sqlalchemy as sa
from tests.databases.relay import Relay
from tests.databases.server import Server
from tests.e2e.script_runs import claim
from tests.node.harness import SETTINGS, Script, Signals

from lodger.engine import Engine as AsyncEngine
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.handlers import Handlers
from lodger.engine.node.executors.attempt import UNANSWERED
from lodger.engine.node.executors.host_executor import HostExecutor
from lodger.engine.store.drivers import patience
from lodger.engine.store.drivers.postgresql import connections as of_postgres
from lodger.engine.sync import Engine
from lodger.sandbox.outcome import Outcome

T = TypeVar("T")
#: Of who waits for an answer that never comes; everything else in a test has all the time there is.
PATIENCE_S = 0.3


@pytest.fixture
def engine(relay: Relay, name: str) -> Iterator[Engine]:
    with opened(relay.url(name, connect_timeout="2")) as engine:
        engine.tenants.create("acme")
        yield engine


def tenant_ids(engine: Engine) -> list[str]:
    return [each.id for each in engine.tenants.list()]


def opened(url: str) -> Engine:
    return patiently(lambda: Engine.open(url))


def patiently(do: Callable[[], T]) -> T:
    """Retry as often as needed: on a busy machine a connection may take longer than the time limit."""
    for _ in range(20):
        try:
            return do()
        except Unavailable:
            continue
    return do()


@pytest.mark.parametrize("ways", [("up", "down"), ("down",)], ids=["both", "answers"])
def test_whoever_waits_in_a_silent_network_is_told_and_goes_on_when_it_speaks(
    relay: Relay, engine: Engine, ways: tuple[str, ...]
) -> None:
    relay.silence(*ways)
    # First a connection of the pool, and then a new one, are tried.
    with pytest.raises(Unavailable) as reported, patience.waiting(PATIENCE_S):
        tenant_ids(engine)
    assert reported.value.code == "database_unreachable"
    relay.heal()
    assert patiently(lambda: tenant_ids(engine)) == ["acme"]


def test_without_patience_that_ends_a_silent_network_holds_its_thread_for_ever(relay: Relay, name: str) -> None:
    """The wall taken away: the same question on the driver's own connection, asked before, still waits when ours was told."""
    bare, ours = psycopg.connect(relay.url(name)), of_postgres.connect(relay.url(name), PATIENCE_S)
    relay.silence()
    with ThreadPoolExecutor(2) as threads:
        hangs = threads.submit(bare.execute, "SELECT 1")
        reported: Any = threads.submit(ours.execute, "SELECT 1")
        assert first([hangs, reported], 20, "FIRST_COMPLETED").done == {reported}
        assert "no answer" in str(reported.exception())
        assert ours.closed
        assert not hangs.done()
        relay.heal()
        assert hangs.result(20).fetchone() == (1,)
    bare.close()


def test_a_threads_own_patience_stands_above_the_connections(relay: Relay, name: str) -> None:
    with of_postgres.connect(relay.url(name), 0.2) as connection, patience.waiting(60.0):
        connection.execute("SELECT pg_sleep(0.5)")


def test_a_network_that_swallows_everything_is_the_kernels_to_notice(relay: Relay, engine: Engine) -> None:
    """Where nothing is acknowledged any more, which loopback cannot show, these end the wait."""
    with engine.context.database.read() as connection:
        raw: Any = connection.connection.driver_connection
        with socket.socket(fileno=raw.fileno()) as wire:
            assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 7_000
            assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 3
            wire.detach()


def test_a_handler_that_asks_a_silent_ledger_until_its_deadline_is_not_to_blame(relay: Relay, engine: Engine) -> None:
    relay.silence()
    handlers = Handlers()
    handlers.add(handlers.make("look", lambda _call: tenant_ids(engine), None, 0.6, offered=False))
    ended = asyncio.run(HostExecutor(handlers, SystemClock(), "n1").execute(claim("", script_name="@look")))
    relay.heal()
    assert (ended.outcome, ended.error) == (Outcome.ENGINE_FAULT, UNANSWERED)


async def test_one_silent_session_holds_a_node_up_for_a_lease_at_most(relay: Relay, name: str, server: Server) -> None:
    """The session of the next read falls silent for ever, while the lease is renewed by another one."""

    settings = SETTINGS.model_copy(update={"lease_s": 2.0})
    async with AsyncEngine.open(relay.url(name), settings=settings) as engine:
        await engine.tenants.create("acme")
        await engine.scripts.put("acme", "job", "export default () => 1")
        signals = Signals(engine)
        async with engine.node(Script(), "n1"), asyncio.timeout(40):
            relay.silence_link(b"REPEATABLE READ")
            await asyncio.to_thread(relay.held.wait, 30)
            with Engine.open(server.url(name)) as other:
                other.run_in("acme", "job", 0)
            await signals.wait("finished")


def test_a_statement_that_is_given_up_takes_its_transaction_with_it(relay: Relay, engine: Engine) -> None:
    relay.silence_after(b"UPDATE lodger_tenants SET state = 'x'")
    with (
        pytest.raises(Unavailable) as reported,
        engine.context.database.write() as connection,
        patience.waiting(PATIENCE_S),
    ):
        connection.execute(sa.text("UPDATE lodger_tenants SET state = 'x'"))
    assert "no answer" in str(reported.value.why)
    assert relay.held.is_set()
    relay.heal()
    assert patiently(lambda: engine.tenants.get("acme")).state == "active"
