"""A tenant moves between ledgers while nodes of both run its actions, and while a database server crashes at each step of the move."""

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from tests.chaos.child_processes import Child
from tests.chaos.processes import ROOT, TABLE, states, until
from tests.databases.server import Server, binaries
from tests.features.ledgers.systems import create_schedule, ledgers, opened
from tests.store.bench import OK, Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.connection.database import Database
from lodger.engine.sync import Engine

pytestmark = pytest.mark.timeout(1200)  # other processes may be slow on a busy machine


@contextmanager
def node(url: str, name: str, mode: str) -> Iterator[Child]:
    process = Child("tests.chaos.engine_process", url, name, mode, env=os.environ | {"PYTHONPATH": str(ROOT)})
    try:
        assert process.stdout.readline().strip() == "up"
        yield process
    finally:
        process.remove()


def effects(engine: Engine) -> list[tuple[str, int]]:
    """Return the action and the step of each effect."""
    with engine.context.database.read() as connection:
        return [tuple(row) for row in connection.execute(text("SELECT id, step FROM effects_seen"))]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)  # files: tests/features/ledgers/test_moving.py
def test_running_attempts_move_and_each_slot_has_its_row_and_one_effect(url: str, place: str, tmp_path: Path) -> None:
    settings = ledgers(tmp_path, url, far=place)
    with Engine.open_all(settings) as system, ExitStack() as stack:
        system.tenants.create("acme", ledger="home", limits={"concurrent_runs": 1000})
        system.scripts.put("acme", "job", "export default () => 1")
        old, new = (system.member(name).opened() for name in ("home", "far"))
        for each in (old, new):
            with each.context.database.write() as connection:
                TABLE.create(connection)
        stack.enter_context(node(place, "there", "race"))
        for number in range(3):
            system.schedules.create("acme", f"s{number}", script="job", rules="every 1s", overlap="allow")
        with node(url, "holds", "hold") as holding:
            assert holding.stdout.readline().startswith("holding ")
            assert states(old).get("running"), "attempts run while the tenant moves"
            assert system.tenants.move("acme", "far").ledger == "far"
            holding.send_signal(signal.SIGUSR1)  # what it still holds succeeds, and is not committed
            holding.terminate()
            assert holding.wait(60) == 0
        assert effects(old) == []
        until(lambda: states(new).get("done", 0) > 10, 60)
        stack.enter_context(node(url, "here", "race"))
        for there, ledger in ((old, "home"), (new, "far"), (old, "home")):
            assert system.tenants.move("acme", ledger).ledger == ledger
            before = len(effects(there))
            until(lambda: len(effects(there)) > before + 10, 60)  # noqa: B023 - within this turn
        for number in range(3):
            system.schedules.pause("acme", f"s{number}")
        until(lambda: set(states(old)) <= {"done", "skipped"}, 60)
        assert states(new) == {}, "it has left nothing"
        seen = [*effects(old), *effects(new)]
        actions = system.actions.list("acme", limit=None)
        assert len(seen) == len(set(seen))
        assert {action for action, _step in seen} == {each.id for each in actions if each.state == "done"}
        for schedule in system.schedules.list("acme"):
            slots = [slot for each in actions if each.schedule_id == schedule.id for slot in _slots(each, 1)]
            slots.sort()
            assert [after - before for before, after in pairwise(slots)] == [timedelta(seconds=1)] * (len(slots) - 1)
        assert {each.reason for each in actions if each.state != "done"} <= {"tenant_suspended"}


@contextmanager
def servers() -> Iterator[list[Server]]:
    """Start two servers that keep each answered commit."""
    with ExitStack() as stack:
        found = []
        for _ in range(2):
            server = Server(Path(tempfile.mkdtemp(prefix="lodger-pg-")))
            stack.callback(server.remove)
            server.settings["synchronous_commit"] = "on"
            server.start()
            found.append(server)
        yield found


def move_and_crash(system: Any, hosts: list[Server], commits: int, ledger: str) -> Server | None:
    """Move the tenant, and crash the server of the transaction after so many, in turns before it commits and once it has."""
    left, gone = iter(range(commits)), []
    write = Database.write

    @contextmanager
    def cut(database: Database, *more: Any) -> Iterator[Connection]:
        with write(database, *more) as connection:
            yield connection
            last = not gone and next(left, None) is None
            server = hosts[database is not system.at(None).context.database]
            if last and not commits % 2:
                gone.append(server)
                server.slay()
        if last and commits % 2:
            gone.append(server)
            server.slay()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Database, "write", cut)
        try:
            system.tenants.move("acme", ledger)
        except Unavailable as error:
            if error.code != "ledger_unreachable":
                raise
    return gone[0] if gone else None


@pytest.mark.slow
@pytest.mark.skipif(
    binaries() is None, reason="NOT TESTED on PostgreSQL: it is not installed (apt-get install postgresql)"
)
def test_a_server_that_crashes_at_any_step_of_a_move_loses_nothing_and_the_move_goes_on(tmp_path: Path) -> None:
    clock = VirtualClock()
    with servers() as hosts:
        home, far = (each.url(each.database(empty=True)) for each in hosts)
        settings = ledgers(tmp_path, home)
        file = tmp_path / "ledgers.toml"
        file.write_text(file.read_text().replace("far.db", far))
        with opened(settings, clock) as system:
            create_schedule(system, "acme", ledger="home")
            bench = Bench(system.at("acme"), clock)
            bench.lease()

            for _ in range(3):
                clock.advance(60)
                bench.renew()
                bench.tick()
                bench.run(OK)
            known = {each.id for each in system.actions.list("acme", limit=None)}
            ledger, crashes = "far", 0
            for commits in range(40):
                server = move_and_crash(system, hosts, commits, ledger)
                if server is None:
                    break
                crashes += 1
                server.start()
                clock.advance(60)
                until(lambda: _moved(system, ledger), 20)  # noqa: B023 - within this turn
                assert [each.moving for each in system.ledgers.list()] == [(), ()]
                assert system.tenants.get("acme").state == "active"
                assert known <= {each.id for each in system.actions.list("acme", limit=None)}
                ledger = "home" if ledger == "far" else "far"
            assert crashes >= 5, "each of the commits of a move"
            slots = [slot for each in system.actions.list("acme", limit=None) for slot in _slots(each, 60)]
            assert sorted(slots) == [min(slots) + timedelta(minutes=number) for number in range(len(slots))], (
                "each slot once"
            )


def _slots(action: Any, seconds: int) -> list[datetime]:
    """Return the slots for which an action stands: one, or those of a gap."""
    span = ((action.slot_to or action.slot) - action.slot).total_seconds()
    return [action.slot + timedelta(seconds=seconds * number) for number in range(round(span / seconds) + 1)]


def _moved(system: Any, ledger: str) -> bool:
    """Go on with a move; return whether it is finished."""
    try:
        return bool(system.tenants.move("acme", ledger).ledger == ledger)
    except Unavailable:
        return False
