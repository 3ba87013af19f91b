"""PostgreSQL's primary is killed under load and its standby promoted: nodes go on at the standby, and know what they lost."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.chaos import engine_process, processes
from tests.chaos.processes import Start, add_ready_actions, check_done_once, counts, states, until
from tests.chaos.standby import ask, free_ports
from tests.databases.fixtures import absent
from tests.databases.server import Server

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.connection.database import Database, reads_from_replica
from lodger.engine.sync import Engine

start = processes.start
ACTIONS = 60
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(absent() is not None, reason=f"NOT TESTED on PostgreSQL: {absent()}"),
]


def known(engine: Engine) -> dict[str, int]:
    """Return the states of actions; empty while the server is down."""
    try:
        return states(engine)
    except Unavailable:
        return {}


class Pair:
    """A primary and its standby."""

    def __init__(self, stack: ExitStack) -> None:
        self.ports = free_ports()
        self.primary = self._begun(stack, self.ports[0], None)
        self.name = self.primary.database()
        self.standby = self._begun(stack, self.ports[1], self.primary)

    def _begun(self, stack: ExitStack, port: int, of: Server | None) -> Server:
        made = Server(Path(tempfile.mkdtemp(prefix="lodger-pg-")), port, of)
        stack.callback(made.remove)
        made.settings |= {"synchronous_commit": "on", "wal_level": "replica"}
        made.start()
        return made

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"postgresql://postgres@{hosts}/{self.name}?target_session_attrs=read-write&sslmode=disable"

    def synchronous(self) -> None:
        """Let each commit wait for the standby from now on."""
        ask(self.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        until(lambda: ask(self.primary, "SELECT sync_state FROM pg_stat_replication") == [("sync",)], 30)

    def cut(self) -> None:
        """Let the standby receive nothing more."""
        ask(self.standby, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        until(lambda: ask(self.standby, "SELECT count(*) FROM pg_stat_wal_receiver") == [(0,)], 30)

    def fail_over(self) -> None:
        """Kill the primary as a loss of power does, and promote the standby."""
        self.primary.slay()
        ask(self.standby, "SELECT pg_promote()")


@pytest.fixture
def pair() -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(stack)


@pytest.fixture
def url(pair: Pair) -> str:
    return pair.url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    with Engine.open(url, settings=engine_process.SETTINGS) as engine:
        processes.furnish(engine)
        yield engine


def test_with_a_synchronous_standby_nothing_is_lost_and_nothing_doubled(
    pair: Pair, engine: Engine, start: Start
) -> None:
    pair.synchronous()
    replica = Database(pair.url, replica=pair.standby.url(pair.name))
    with reads_from_replica(), replica.read() as connection:
        assert connection.exec_driver_sql("SELECT pg_is_in_recovery()").scalar(), "a standby answers reads"
    with replica.read() as connection:
        assert not connection.exec_driver_sql("SELECT pg_is_in_recovery()").scalar()
    replica.close()
    nodes = [start("one"), start("two")]
    add_ready_actions(engine, ACTIONS)
    until(lambda: known(engine).get("done", 0) >= ACTIONS // 4, 60)
    pair.fail_over()
    until(lambda: known(engine) == {"done": ACTIONS}, 60)
    check_done_once(engine, ACTIONS)
    assert all(node.poll() is None for node in nodes), "a node ended because its database moved"
    for node in nodes:
        assert node.stdout.readline().split() == ["ledger_replaced", "0"]


def test_what_an_asynchronous_standby_lost_is_reported_and_runs_again(pair: Pair, engine: Engine, start: Start) -> None:
    node = start("one")
    add_ready_actions(engine, ACTIONS)
    until(lambda: known(engine).get("done", 0) >= ACTIONS // 4, 60)
    pair.cut()
    until(lambda: known(engine) == {"done": ACTIONS}, 60)
    pair.fail_over()
    until(lambda: known(engine).get("done", 0) > 0, 60)
    kind, lost = node.stdout.readline().split()
    assert kind == "ledger_replaced"
    assert 0 < int(lost) <= ACTIONS
    until(lambda: known(engine) == {"done": ACTIONS}, 60)
    check_done_once(engine, ACTIONS)
    until(lambda: counts(engine, "SELECT name, epoch FROM lodger_nodes")["one"] > 1, 60)
