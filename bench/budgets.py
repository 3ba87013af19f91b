"""The promised ratios, measured beside their peers in one run: what is kept, and what is missed by how much."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import event

from lodger.bench import attempts, peers, rules, runs, scripts, storm
from lodger.bench.budget import Budget
from lodger.engine.core.clock import SystemClock, from_us
from lodger.engine.core.settings import Settings
from lodger.engine.effects import outcome_commit
from lodger.engine.effects.finished import Finished
from lodger.engine.store.lifecycle import claims, leases, tick
from lodger.engine.sync import Engine
from lodger.engine.testing.clock import FakeClock
from lodger.sandbox.outcome import Outcome

RATE, LONE_RATE = 50.0, 10.0
TENANTS = 20
#: Actions of a batch whose statements are counted, and the most of a tick, a claim and a finish.
BATCH = 100
MAX_STATEMENTS = {"tick": 6, "claim": 8, "finish": 10}
#: Least shares of the rates of the bare pool and of the queue, and most of the attempt's CPU.
WHOLE_RUNS = {"SQLite": (0.7, 1.0, 0.5), "PostgreSQL": (0.5, 0.8, 0.7)}
#: No-op actions for each slot of a load: one lasts a tenth of a run.
NOOPS = 10


def measure(number: int, url: str | None, folder: Path | None) -> Iterator[Budget]:
    """Measure all promises, each when it is asked for.

    Args:
        number: slots of each load of whole runs, and questions of the others in proportion.
        url: an empty PostgreSQL database; None for SQLite alone.
        folder: where the peers are installed, see :mod:`lodger.bench.peers`.
    """
    queue = peers.measure(folder, url).get("graphile-worker", {})
    lone = runs.measure(number, TENANTS, RATE, folder=folder)
    lone = replace(lone, peers=lone.peers | {"graphile-worker": queue})
    yield from whole_runs("SQLite", lone)
    if (isolate := lone.peers.get("isolated-vm")) is not None:
        rows = attempts.measure("quickjs", min(3.0, number / 100), lambda _row: None)
        yield replace(attempts.budgets("quickjs", rows, isolate)[0], name="trivial script", bound=1.0)
    for place, where, bound in (("SQLite", None, 2.0), ("PostgreSQL", url, 1.0)):
        if place == "SQLite" or where is not None:
            with opened_behind(where) as engine:
                yield from statements(place, engine)
            rate = _noop_actions_per_s(number * NOOPS, where)
            yield _ratio(f"no-op actions, {place}", "graphile-worker", bound, rate, queue.get("per_s"))
    if url is not None:
        near = runs.measure(number, TENANTS, RATE, url=url, folder=folder)
        yield from whole_runs("PostgreSQL", near)
        yield from far_runs(runs.measure(number, TENANTS, LONE_RATE, url=url, folder=folder, rtt_ms=1.0), near)
    one_line, *packages = asyncio.run(scripts.measure(max(3, number // 20), folder, lambda _row: None))
    yield from scripts.budgets([one_line, *packages])
    for row in packages:
        yield Budget(f"importing {row.script}, ms of CPU", "", 2.0, at_least=False, ratio=row.ms - one_line.ms)
    for rule in rules.measure():
        if rule["cronsim"] is not None:
            yield Budget(f"next slot of {rule['rule']}", "cronsim", 0.5, False, rule["lodger"] / rule["cronsim"])


@contextmanager
def opened_behind(url: str | None) -> Iterator[Engine]:
    """Open an empty database, or a new SQLite file, for the block.

    Its clock is behind: the days by which the block moves on are not ahead of the nodes that later use the database.
    """
    clock = FakeClock(from_us(SystemClock().now_us()) - timedelta(days=2, hours=12))
    with (
        TemporaryDirectory() as folder,
        Engine.open(url or f"{folder}/ledger.db", settings=_SETTINGS, clock=clock) as engine,
    ):
        yield engine


_SETTINGS = Settings(concurrent_runs=BATCH, min_interval_s=1, check_scripts=False)


def statements(place: str, engine: Engine) -> Iterator[Budget]:
    """Count the statements of a tick, a claim and a finish of a batch, without those that begin a transaction."""
    for each in range(BATCH):
        tenant = f"b{each % TENANTS}"
        if each < TENANTS:
            engine.tenants.create(tenant)
            engine.scripts.put(tenant, "job", "export default () => null")
        engine.schedules.create(tenant, f"s{each}", script="job", rules="every 1d")
    context, database, sent = engine.context, engine.context.database, Counter[str]()
    step = ""

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        sent[step] += not statement.startswith(("BEGIN", "SET LOCAL"))

    now_us, claimed = context.clock.now_us(), []
    with database.write() as connection:
        lease = leases.register(context, connection, context.ids.new(), "counting", now_us)
    event.listen(database.engine, "before_cursor_execute", note)
    try:
        for _ in range(2):  # the first reads each revision and version
            sent.clear()
            now_us += _DAY_US
            step = "tick"
            with database.write() as connection:
                tick.tick(context, connection, now_us)
            step = "claim"
            with database.write() as connection:
                claimed = claims.claim(context, connection, lease, BATCH, now_us)()
            step = "finish"
            with database.write() as connection:
                ends = [(claim, Finished(Outcome.OK, result="null")) for claim in claimed]
                outcome_commit.commit(context, connection, lease, ends, now_us)
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    assert len(claimed) == BATCH
    for name, bound in MAX_STATEMENTS.items():
        yield Budget(f"statements of a {name} of {BATCH}, {place}", "", bound, at_least=False, ratio=sent[name])


_DAY_US = 86_400_000_000


def _noop_actions_per_s(number: int, url: str | None) -> float:
    """Return how many actions that do nothing are ticked, claimed and finished in a second: all are due at one instant."""
    return number / storm.measure(number, TENANTS, url).done_s


def whole_runs(place: str, measured: runs.Measured) -> Iterator[Budget]:
    """Judge whole runs by the promised shares of the pool, of the queue, and of the attempt's CPU."""
    burst, half, _alone = measured.rows
    pool, (of_pool, of_queue, engine) = measured.pool, WHOLE_RUNS[place]
    yield _ratio(f"whole runs, {place}", "the bare pool", of_pool, burst.per_s, pool.per_s)
    yield _ratio(f"whole runs, {place}", "graphile-worker", of_queue, burst.per_s, _jobs_per_s(measured))
    cpu = half.engine_ms / (half.zygote_ms + half.worker_ms)
    yield Budget(f"engine's CPU of a run, {place}", "the attempt's", engine, at_least=False, ratio=cpu)
    for name, delay_ms, bound in (("p50", half.start_p50_ms, 1.0), ("p99", half.start_p99_ms, 5.0)):
        yield Budget(f"due to start, {name}, {place}", "the pool's answer", bound, False, delay_ms / pool.answer_p50_ms)


def far_runs(far: runs.Measured, near: runs.Measured) -> Iterator[Budget]:
    """Judge whole runs with the server a millisecond away, so that milliseconds are round trips, beside those with it near."""
    burst, half, alone = far.rows
    place = "PostgreSQL 1 ms away"
    yield _ratio(f"whole runs, {place}", "loopback", 0.8, burst.per_s, near.rows[0].per_s)
    yield _ratio(f"whole runs, {place}", "graphile-worker", 0.8, burst.per_s, _jobs_per_s(far))
    done_ms = alone.done_p50_ms - far.pool.answer_p50_ms
    for name, bound, ms in (
        ("due to start, p50, ms", 2.0, half.start_p50_ms),
        ("due to start, p99, ms", 20.0, half.start_p99_ms),
        ("due to done, alone, ms more than the pool", 8.0, done_ms),
    ):
        yield Budget(f"{name}, {place}", "", bound, at_least=False, ratio=ms)


def _ratio(name: str, peer: str, bound: float, ours: float, theirs: float | None) -> Budget:
    return Budget(name, peer, bound, at_least=True, ratio=None if not theirs else ours / theirs)


def _jobs_per_s(measured: runs.Measured) -> float | None:
    return measured.peers.get("graphile-worker", {}).get("scripts_per_s")
