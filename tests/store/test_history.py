"""However long a tenant's history is, a tick, a claim and a commit read no more: counted in steps of SQLite's machine, not in time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, event, text
from tests.store.bench import Bench

from lodger.engine.core.execution import Claim

#: A round more or less in a B-tree that is deeper.
MORE = 1.3


class Steps:
    """Counts what SQLite's machine does."""

    def __init__(self, bench: Bench) -> None:
        self._counted = 0
        event.listen(bench.engine.context.database.engine, "begin", self._watch)

    def _watch(self, connection: Connection) -> None:
        raw = connection.connection.driver_connection
        assert raw is not None
        raw.set_progress_handler(self._count, 10)

    def _count(self) -> int:
        self._counted += 1
        return 0

    def of(self, work: Callable[[], object]) -> int:
        """Count those of some work."""
        before = self._counted
        work()
        assert self._counted > before
        return self._counted - before


@pytest.fixture
def kind() -> str:
    return "sqlite"


@contextmanager
def column_names(bench: Bench, table: str) -> Iterator[list[str]]:
    with bench.engine.context.database.read() as connection:
        yield [row[1] for row in connection.execute(text(f"PRAGMA table_info({table})"))]


def lengthen(bench: Bench, number: int) -> None:
    """Return every action that is over so many predecessors like it, with their attempts."""
    count = f"WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < {number})"
    key = "printf('%04x', k + 16384) || substr({}, 5)"
    past = "{} - k * 3600000000"
    other = {
        "lodger_actions": {"id": key.format("id"), "slot": past.format("slot"), "due_at": past.format("due_at")},
        "lodger_attempts": {"action_id": key.format("action_id")},
    }
    for table, reported in other.items():
        with column_names(bench, table) as names:
            cells = ", ".join(reported.get(name, name) for name in names)
        with bench.engine.context.database.write() as connection:
            connection.execute(
                text(f"{count} INSERT INTO {table} ({', '.join(names)}) SELECT {cells} FROM {table} CROSS JOIN n")
            )


def grown(bench: Bench, *, without: str = "") -> dict[str, tuple[int, int]]:
    """Return what a tick, a claim and a commit took before there was a long history, and with it."""
    bench.tenant(concurrent_runs=100, retention_runs=1_000_000)
    for number in range(3):
        bench.schedule(name=f"s{number}", overlap=("skip", "queue_all", "allow")[number])
    for _ in range(2):
        bench.clock.advance(60)
        bench.tick()
        bench.run()
    steps = Steps(bench)

    def round_of_all() -> dict[str, int]:
        bench.clock.advance(60)
        spent = {"tick": steps.of(bench.tick)}
        claimed: list[Claim] = []
        spent["claim"] = steps.of(lambda: claimed.extend(bench.claim()))
        spent["commit"] = steps.of(lambda: bench.commit(*claimed))
        assert len(claimed) == 3
        return spent

    before = round_of_all()
    lengthen(bench, 1000)
    assert bench.scalar("SELECT count(*) FROM lodger_actions WHERE state = 'done'") == 9 * 1001
    if without:
        with bench.engine.context.database.write() as connection:
            connection.execute(text(f"DROP INDEX {without}"))
    after = round_of_all()
    assert all(before.values())
    return {name: (number, after[name]) for name, number in before.items()}


def slower(found: dict[str, tuple[int, int]]) -> list[str]:
    return [name for name, (before, after) in found.items() if after > before * MORE + 20]


def test_history_makes_nothing_slower(bench: Bench) -> None:
    found = grown(bench)
    assert not slower(found), found


def test_without_the_index_of_what_may_start_it_would(bench: Bench) -> None:
    assert "claim" in slower(grown(bench, without="ix_lodger_actions_startable"))
