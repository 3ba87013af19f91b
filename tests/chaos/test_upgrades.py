"""A schema upgrade under running nodes: those of the release before and after it work on one ledger, and no slot is lost,
nor waits for the end of a lease: its action would have a second attempt.

The release before is the tree right before its newest migration was added, from the history; the release after is this tree with one
more migration.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine as Pool
from sqlalchemy import text
from tests.chaos import leash
from tests.chaos.test_processes import until

from lodger.engine.core.clock import from_us
from lodger.engine.store.migrations.revision import head
from lodger.engine.store.stores import addresses

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = "engine/store/migrations/versions"
FURNISH = """
import sys
from lodger.engine.sync import Engine
from tests.chaos import engine_process
from tests.chaos.test_processes import furnish
with Engine.open(sys.argv[1], settings=engine_process.SETTINGS) as engine:
    furnish(engine)
"""
#: Once a node is up: slots before it would be missed, on a slow machine.
SCHEDULE = """
import sys
from lodger.engine.sync import Engine
from tests.chaos import engine_process
with Engine.open(sys.argv[1], settings=engine_process.SETTINGS) as engine:
    engine.scripts.put("acme", "job", "export default () => 2", shadow=500)
    for number in range(4):
        engine.schedules.create("acme", f"s{number}", script="job", rules="every 1s", overlap="allow")
"""
#: What of the tenant's definitions counts as storage.
COUNTED = {
    "lodger_script_versions": ("modules", "fields", "why"),
    "lodger_script_shadows": ("modules", "why"),
    "lodger_schedule_revisions": ("rules", "sentence", "steps", '"limits"', "params", "why"),
}
NEXT = '''"""Of the next release."""

import sqlalchemy as sa
from alembic import op

revision = "9001"
down_revision = "{head}"
branch_labels = None
depends_on = None
{compatible}

def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("lodger_nodes", sa.Column("next", sa.Text(), server_default="", nullable=False))
'''


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


def env(tree: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{tree}:{tree / '.dev'}"}


def python(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    given = {"cwd": tree, "env": env(tree), "capture_output": True, "text": True, "timeout": 400}
    return subprocess.run([sys.executable, *arguments], check=False, **given)  # type: ignore[call-overload]  # as a mapping


def lodger(tree: Path, *arguments: str) -> Any:
    done = python(tree, "-m", "lodger.engine.cli", *arguments, "--json")
    return json.loads(done.stdout) | {"code": done.returncode}


@contextmanager
def nodes(tree: Path, url: str, *names: str, mode: str = "race") -> Iterator[list["subprocess.Popen[str]"]]:
    begun = [
        subprocess.Popen(
            leash.python("-m", "tests.chaos.engine_process", url, name, mode),
            stdout=subprocess.PIPE,
            text=True,
            cwd=tree,
            env=env(tree),
        )
        for name in names
    ]
    try:
        for each in begun:
            assert each.stdout is not None
            assert each.stdout.readline().strip() == "up"
        yield begun
    finally:
        for each in begun:
            each.kill()
            each.communicate()


def stop(processes: list["subprocess.Popen[str]"]) -> None:
    for each in processes:
        each.terminate()
    assert [each.wait(400) for each in processes] == [0] * len(processes)


def previous(folder: Path) -> Path:
    """Return the tree before the newest migration was added, or skip aloud."""
    found = subprocess.run(
        ["git", "log", "-1", "--diff-filter=A", "--format=%H", "--", VERSIONS], cwd=ROOT, capture_output=True, text=True, check=False
    )  # fmt: skip
    commit = f"{found.stdout.strip()}^"
    tar = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if not found.stdout.strip() or tar.returncode:
        pytest.skip("NOT TESTED with the release before: this checkout has no history")
    subprocess.run(["tar", "x", "-C", str(folder)], input=tar.stdout, check=True)
    return folder


def following(folder: Path, compatible_with: str | None = None) -> Path:
    """Return this tree with a further migration; with ``compatible_with`` it takes something away."""
    for name in ("lodger", "engine", "sandbox", "stdlib", "escape", "bench", "tests"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True)
    line = f'compatible_with = "{compatible_with}"\n' if compatible_with else ""
    (folder / VERSIONS / "9001_next.py").write_text(NEXT.format(head=head(), compatible=line))
    nodes_of = folder / "engine/store/schema/nodes.py"
    nodes_of.write_text(nodes_of.read_text().replace(
        '    Column("slots", Integer', '    Column("next", Text, nullable=False, server_default=""),\n    Column("slots", Integer', 1
    ))  # fmt: skip
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("release", ["before", "after"])
def test_nodes_of_two_releases_work_together_while_the_ledger_is_upgraded(
    release: str, kind: str, url: str, ledger: Ledger, tmp_path: Path
) -> None:
    if (release == "after") is (kind == "postgresql"):
        pytest.skip("with the release before on PostgreSQL, with the one after on SQLite")
    other = tmp_path / "other"
    other.mkdir()
    older, newer = (previous(other), ROOT) if release == "before" else (ROOT, following(other))
    ledger.pool.dispose()
    if kind == "sqlite":
        Path(url.removeprefix("sqlite:///")).unlink(missing_ok=True)
    else:
        ledger.rows("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    made = python(older, "-c", FURNISH, url)
    assert made.returncode == 0, made.stderr
    with nodes(older, url, "old") as old:
        made = python(older, "-c", SCHEDULE, url)
        assert made.returncode == 0, made.stderr
        ledger.more()
        upgraded = lodger(newer, "db", "upgrade", "--without-backup", "--db", url)
        assert upgraded["code"] == 0, upgraded
        assert upgraded["applied"], upgraded
        # A release that claims ahead would leave nothing to one that does not.
        with nodes(newer, url, "new", mode="even" if release == "before" else "race") as new:
            ledger.rows("DELETE FROM effects_seen")
            until(lambda: ledger.rows("SELECT count(DISTINCT name) FROM effects_seen") == [(2,)], 60)
            stop(old)
            ledger.more()
            ledger.rows("UPDATE lodger_schedule_clock SET state = 'paused', next_at = NULL")
            until(lambda: ledger.rows("SELECT DISTINCT state FROM lodger_actions") == [("done",)], 60)
            stop(new)
    assert ledger.rows("SELECT DISTINCT outcome FROM lodger_attempts") == [("ok",)]
    assert ledger.rows("SELECT DISTINCT attempt FROM lodger_actions") == [(1,)]
    assert ledger.rows("SELECT id FROM effects_seen GROUP BY id, step HAVING count(*) > 1") == []
    for (schedule,) in ledger.rows("SELECT id FROM lodger_schedules"):
        slots = [from_us(row[0]) for row in ledger.rows(
            f"SELECT slot FROM lodger_actions WHERE schedule_id = '{schedule}' ORDER BY slot"
        )]  # fmt: skip
        assert [after - before for before, after in pairwise(slots)] == [timedelta(seconds=1)] * (len(slots) - 1)
    # What an older release began goes on in the newer one: the shadow is there, counted once, and promoted.
    assert lodger(newer, "script", "promote", "acme", "job", "--db", url)["version"] == 2
    sizes = [" + ".join(f"coalesce(length({each}), 0)" for each in columns) for columns in COUNTED.values()]
    held = [ledger.rows(f"SELECT sum({size}) FROM {table}")[0][0] for table, size in zip(COUNTED, sizes, strict=True)]
    assert ledger.rows("SELECT sum(kept_bytes) FROM lodger_storage") == [(sum(held),)]
    checked = lodger(newer, "db", "check", "--db", url)
    assert (checked["verdict"], checked["damages"], checked["broken"]) == ("current", [], [])


def waits(node: "subprocess.Popen[str]", code: str) -> None:
    """Check that a node says why it waits, again and again."""
    assert node.stdout is not None
    for _ in range(2):
        line = json.loads(node.stdout.readline())
        assert (line["kind"], line["code"], line["left_s"]) == ("waiting", code, None)


@contextmanager
def up(tree: Path, url: str, name: str) -> Iterator["subprocess.Popen[str]"]:
    node = subprocess.Popen(
        leash.python("-m", "lodger.engine.cli", "up", "--role", "node", "--name", name, "--db", url, "--json"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=tree, env=env(tree),
    )  # fmt: skip
    try:
        yield node
    finally:
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=400)


def test_what_running_nodes_need_is_not_taken_away_and_a_node_on_another_schema_waits(
    url: str, ledger: Ledger, tmp_path: Path, kind: str
) -> None:
    if kind == "postgresql":
        pytest.skip("what a node reads is the same on SQLite")
    newer = following(tmp_path, compatible_with="9001")
    assert python(ROOT, "-c", FURNISH, url).returncode == 0
    with up(newer, url, "new") as early:
        waits(early, "database_behind")
        with nodes(ROOT, url, "living") as living:
            refused = lodger(newer, "db", "upgrade", "--without-backup", "--db", url)
            assert (refused["code"], refused["error"]["code"]) == (1, "database_in_use"), refused
            assert "living" in refused["error"]["message"]
            stop(living)
        assert len(lodger(newer, "db", "upgrade", "--without-backup", "--db", url)["applied"]) == 1
        until(lambda: ledger.rows("SELECT count(*) FROM lodger_nodes WHERE name = 'new'") == [(1,)], 60)
    with up(ROOT, url, "old") as late:
        waits(late, "database_newer")
    assert ledger.rows("SELECT count(*) FROM lodger_nodes WHERE name = 'old'") == [(0,)]
