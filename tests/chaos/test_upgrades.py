"""A schema upgrade under running nodes: those of the release before and after it work on one ledger, and no slot is lost,
nor waits for the end of a lease: its action would have a second attempt.

The release before is this tree, the release after is this tree with one more migration.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine as Pool
from sqlalchemy import text
from tests.chaos import child_processes, processes
from tests.chaos.child_processes import Child
from tests.chaos.engine_process import SETTINGS
from tests.chaos.processes import Start, furnish, until
from tests.databases.next_release import REVISION, ROOT, environment, lodger, lodger_commands, next_release

from lodger.engine.core.clock import from_us
from lodger.engine.store.drivers import addresses
from lodger.engine.sync import Engine

start = processes.start
#: What of the tenant's definitions counts as storage.
COUNTED = {
    "lodger_script_versions": ("modules", "fields", "why"),
    "lodger_script_shadows": ("modules", "why"),
    "lodger_schedule_revisions": ("rules", "sentence", "steps", '"limits"', "params", "why"),
}


class Ledger:
    """The ledger as SQL, whatever its schema."""

    def __init__(self, url: str) -> None:
        driver, address = addresses.ledger_url(url)
        self.pool: Pool = driver.open(address, synchronous="NORMAL", patience_s=60)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with self.pool.begin() as connection:
            found = connection.execute(text(statement))
            return [tuple(row) for row in found] if found.returns_rows else []

    def done(self) -> int:
        return int(self.rows("SELECT count(*) FROM lodger_actions WHERE state = 'done'")[0][0])

    def more(self) -> None:
        """Wait for some further runs."""
        wanted = self.done() + 6
        until(lambda: self.done() >= wanted, 60)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    found = Ledger(url)
    yield found
    found.pool.dispose()


@contextmanager
def process(tree: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A process of another tree, which has to import it; one of this tree is a :class:`Child`."""
    begun = subprocess.Popen(
        child_processes.python(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tree,
        env=environment(tree),
    )
    try:
        yield begun
    finally:
        begun.kill()
        begun.communicate()


def stop(node: "subprocess.Popen[str] | Child") -> None:
    node.terminate()
    assert node.wait(400) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)  # on SQLite a node of each release runs below
def test_nodes_of_two_releases_work_together_while_the_ledger_is_upgraded(
    url: str, ledger: Ledger, start: Start, tmp_path: Path
) -> None:
    newer = next_release(tmp_path / "newer")
    with Engine.open(url, settings=SETTINGS) as engine:
        furnish(engine)
        old = start("old", "race")
        # Once a node is up: slots before it would be missed, on a slow machine.
        engine.scripts.put("acme", "job", "export default () => 2", shadow=500)
        for number in range(4):
            engine.schedules.create("acme", f"s{number}", script="job", rules="every 1s", overlap="allow")
    ledger.more()
    upgraded = lodger(newer, "db", "upgrade", "--without-backup", "--db", url)
    assert upgraded["code"] == 0, upgraded
    assert upgraded["applied"], upgraded
    with process(newer, "-m", "tests.chaos.engine_process", url, "new", "race") as new:
        ledger.rows("DELETE FROM effects_seen")
        until(lambda: ledger.rows("SELECT count(DISTINCT name) FROM effects_seen") == [(2,)], 60)
        stop(old)
        ledger.more()
        ledger.rows("UPDATE lodger_schedule_clock SET state = 'paused', next_at = NULL")
        until(lambda: ledger.rows("SELECT DISTINCT state FROM lodger_actions") == [("done",)], 60)
        stop(new)
    assert ledger.rows("SELECT name, state FROM lodger_nodes ORDER BY name") == [("new", "stopped"), ("old", "stopped")]
    assert ledger.rows("SELECT DISTINCT outcome FROM lodger_attempts") == [("ok",)]
    assert ledger.rows("SELECT DISTINCT attempt FROM lodger_actions") == [(1,)]
    assert ledger.rows("SELECT id FROM effects_seen GROUP BY id, step HAVING count(*) > 1") == []
    for (schedule,) in ledger.rows("SELECT id FROM lodger_schedules"):
        slots = [from_us(row[0]) for row in ledger.rows(
            f"SELECT slot FROM lodger_actions WHERE schedule_id = '{schedule}' ORDER BY slot"
        )]  # fmt: skip
        assert [after - before for before, after in pairwise(slots)] == [timedelta(seconds=1)] * (len(slots) - 1)
    # What an older release began goes on in the newer one: the shadow is there, counted once, and promoted.
    promoted, checked = lodger_commands(
        newer, ("script", "promote", "acme", "job", "--db", url), ("db", "check", "--db", url)
    )
    assert promoted["version"] == 2
    sizes = [" + ".join(f"coalesce(length({each}), 0)" for each in columns) for columns in COUNTED.values()]
    held = [ledger.rows(f"SELECT sum({size}) FROM {table}")[0][0] for table, size in zip(COUNTED, sizes, strict=True)]
    assert ledger.rows("SELECT sum(kept_bytes) FROM lodger_storage") == [(sum(held),)]
    assert (checked["verdict"], checked["damages"], checked["broken"]) == ("current", [], [])


def waits(node: "subprocess.Popen[str] | Child", code: str) -> None:
    """Check that a node says why it waits, again and again."""
    assert node.stdout is not None
    for _ in range(2):
        line = json.loads(node.stdout.readline())
        assert (line["kind"], line["code"], line["left_s"]) == ("waiting", code, None)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_what_running_nodes_need_is_not_taken_away_and_a_node_on_another_schema_waits(
    url: str, ledger: Ledger, start: Start, tmp_path: Path
) -> None:
    newer = next_release(tmp_path / "newer", compatible_with=REVISION)
    with Engine.open(url, settings=SETTINGS) as engine:
        furnish(engine)
    up = ("up", "--role", "node", "--db", url, "--json", "--name")
    with process(newer, "-m", "lodger.engine.cli", *up, "new") as early:
        waits(early, "database_behind")
        living = start("living", "race")
        refused = lodger(newer, "db", "upgrade", "--without-backup", "--db", url)
        assert (refused["code"], refused["error"]["code"]) == (1, "database_in_use"), refused
        assert "living" in refused["error"]["message"]
        stop(living)
        assert len(lodger(newer, "db", "upgrade", "--without-backup", "--db", url)["applied"]) == 1
        until(lambda: ledger.rows("SELECT count(*) FROM lodger_nodes WHERE name = 'new'") == [(1,)], 60)
        early.terminate()
        early.communicate(timeout=400)
    late = Child("lodger.engine.cli", *up, "old", env=environment(ROOT))
    try:
        waits(late, "database_newer")
    finally:
        late.remove()
    assert ledger.rows("SELECT count(*) FROM lodger_nodes WHERE name = 'old'") == [(0,)]
