"""Durations of schedules: the latest runs of each step against earlier ones, slow-downs, and runs longer than their interval."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import log
from statistics import median
from typing import Any

from sqlalchemy import Connection, func, select

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.features.slow_runs.slowdown import RECENT, Onset, review
from lodger.engine.policy.pace import Pace, Timing, pace
from lodger.engine.store.actions.monitoring import successes
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.context import StoreContext
from lodger.engine.store.records import AnyRow
from lodger.engine.store.revision_cache import Revision
from lodger.engine.store.schema.scheduling import actions, schedule_clock, schedules

#: Ended actions among which the schedules of all tenants are looked for.
MAX_LATEST = 5000
_a, _s, _k = actions.c, schedules.c, schedule_clock.c


@dataclass(frozen=True, slots=True)
class RunDuration:
    """One successful run."""

    action_id: str
    finished_at: datetime
    took_ms: float


@dataclass(frozen=True, slots=True)
class ScheduleDurations:
    """The latest successful runs of one step of a schedule against earlier ones.

    Attributes:
        runs: at most fifty, oldest first.
        pace: median and median deviation of the runs before the latest five; of all runs while there are fewer than ten.
        level_ms: median of the latest five.
        change: ``level_ms`` as a multiple of the earlier median; None while there are fewer than ten runs.
        onset: ``jump`` or ``drift`` if the level has risen to at least twice the earlier one and by at least a second.
        slow: the latest run took unusually long.
        interval_ms: from the latest run's slot to the next slot; None without a slot.
        overruns: how many of the latest five runs took longer than from their slot to the next one.
    """

    tenant_id: str
    schedule_id: str
    schedule: str
    step: int
    runs: tuple[RunDuration, ...]
    pace: Pace
    level_ms: float
    change: float | None
    onset: Onset | None
    slow: bool
    interval_ms: float | None
    overruns: int

    def order(self) -> tuple[Any, ...]:
        """Return the sort key: the most changed first, of equals the one that ran last."""
        changed = self.onset is not None or self.overruns > 0
        return not changed, -abs(log(self.change or 1.0)), self.schedule, -self.runs[-1].finished_at.timestamp()


def read(context: StoreContext, connection: Connection, tenant_id: str | None, limit: int) -> list[ScheduleDurations]:
    """Return the durations of a tenant's schedules, or of those of all tenants that ended runs last; the most changed first."""
    rows = list(_schedules(connection, tenant_id, limit))
    known = context.revision_cache.revisions(connection, [(row.tenant_id, row.id, row.revision) for row in rows])
    tracks = [(row, step) for row in rows for step in range(max(1, len(known[row.id].steps)))]
    found = read_together(*(partial(successes, connection, (row.id, step)) for row, step in tracks))
    compared = [
        _compared(row, step, known[row.id], runs) for (row, step), runs in zip(tracks, found, strict=True) if runs
    ]
    return sorted(compared, key=ScheduleDurations.order)


def _schedules(connection: Connection, tenant_id: str | None, limit: int) -> Iterable[AnyRow]:
    """Read the schedules whose durations are compared: a tenant's by name, or those that ended runs last."""
    if tenant_id is not None:
        wanted = (
            select(_s.tenant_id, _s.id, _s.name, _k.revision)
            .join_from(schedules, schedule_clock)
            .where(_s.deleted_us.is_(None), _s.tenant_id == tenant_id)
            .order_by(_s.name)
            .limit(limit)
        )
        return connection.execute(wanted).all()
    ended = select(_a.tenant_id, _a.schedule_id, _a.finished_us).where(_a.finished_us >= 0)
    each = ended.order_by(_a.finished_us.desc()).limit(MAX_LATEST).subquery("ended").c
    latest = (
        select(each.tenant_id, each.schedule_id.label("id"), func.max(each.finished_us).label("at"))
        .where(each.schedule_id.is_not(None))
        .group_by(each.tenant_id, each.schedule_id)
        .subquery("latest")
        .c
    )
    # Not joins: without statistics PostgreSQL would begin with all schedules, and look for each in all that ended.
    name = select(_s.name).where(_s.tenant_id == latest.tenant_id, _s.id == latest.id, _s.deleted_us.is_(None))
    revision = select(_k.revision).where(_k.tenant_id == latest.tenant_id, _k.schedule_id == latest.id)
    kept = name.scalar_subquery()
    found = select(latest.tenant_id, latest.id, kept.label("name"), revision.scalar_subquery().label("revision"))
    return connection.execute(found.where(kept.is_not(None)).order_by(latest.at.desc()).limit(limit)).all()


def _compared(row: AnyRow, step: int, revision: Revision, runs: list[AnyRow]) -> ScheduleDurations:
    """Compare the runs of a step, newest first."""
    took = [run.wall_us / 1000 for run in runs]
    earlier, level = took[RECENT:], median(took[:RECENT])
    known = len(earlier) >= RECENT
    usual = pace(earlier if known else took)
    timings = [Timing(run.finished_us, ms) for run, ms in zip(runs, took, strict=True)]
    slowdown = review(None, timings)[1]
    spans = [_to_next_slot_ms(revision, run.slot) for run in runs[:RECENT]]
    longer = sum(span is not None and ms > span for span, ms in zip(spans, took, strict=False))
    return ScheduleDurations(
        row.tenant_id, row.id, row.name, step,
        tuple(
            RunDuration(run.id, from_us(run.finished_us), ms) for run, ms in zip(reversed(runs), reversed(took), strict=True)
        ),
        usual, level, round(level / usual.median_ms, 3) if known and usual.median_ms else None,
        None if slowdown is None else slowdown.onset, known and usual.slow(took[0]), spans[0], longer,
    )  # fmt: skip


def _to_next_slot_ms(revision: Revision, slot_us: int | None) -> float | None:
    """Return the milliseconds from a slot to the next one of its schedule."""
    if slot_us is None or revision.fault is not None:
        return None
    following = revision.recurrence.next_after(from_us(slot_us))
    return (to_us(following) - slot_us) / 1000 if isinstance(following, datetime) else None
