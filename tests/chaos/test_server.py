"""Four engine processes on one PostgreSQL: killed with SIGKILL, with a crash of the server; every slot is accounted for."""

import signal
import subprocess
from collections.abc import Iterator

import pytest
from tests.chaos import engine_process, test_processes
from tests.chaos.test_processes import Start, audit, counts, fill, states, until
from tests.databases.fixtures import absent

from lodger.engine.core.errors import Unavailable
from lodger.engine.sync import Engine

start = test_processes.start
ACTIONS = 800
pytestmark = pytest.mark.skipif(absent() is not None, reason=f"NOT TESTED on PostgreSQL: {absent()}")


@pytest.fixture
def url() -> Iterator[str]:
    """Yield the URL of a separate server, which may be crashed."""
    from tests.databases import server

    own = server.own()
    own.settings |= {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    own.stop()
    own.start()
    _SERVERS["own"] = own
    yield own.url(own.database())
    own.remove()


_SERVERS: dict[str, object] = {}


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    with Engine.open(url, settings=engine_process.SETTINGS) as engine:
        test_processes.furnish(engine)
        yield engine


def known(engine: Engine) -> dict[str, int]:
    """Return the states of actions; empty while the server is down."""
    try:
        return states(engine)
    except Unavailable:
        return {}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_four_processes_one_killed_and_the_server_crashed_in_the_middle_lose_nothing(
    engine: Engine, start: Start
) -> None:
    from tests.databases.server import Server

    server = _SERVERS["own"]
    assert isinstance(server, Server)
    living: list[subprocess.Popen[str]] = [start(name) for name in ("a", "b", "c", "d")]
    fill(engine, ACTIONS)
    until(lambda: known(engine).get("done", 0) >= 120, 60)
    living[0].send_signal(signal.SIGKILL)
    until(lambda: known(engine).get("done", 0) >= 320, 60)
    server.stop(signal.SIGQUIT)
    with pytest.raises(Unavailable) as refused:
        states(engine)
    assert refused.value.code == "database_unreachable"
    server.start()
    until(lambda: known(engine) == {"done": ACTIONS}, 120)
    audit(engine, ACTIONS)
    assert all(process.poll() is None for process in living[1:]), "an engine ended because its database did"
    shares = counts(engine, "SELECT name, count(*) FROM effects_seen GROUP BY name")
    assert len(shares) >= 3, f"that was no race: {shares}"
