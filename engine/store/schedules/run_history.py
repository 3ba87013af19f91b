"""A schedule's past at a glance: the latest runs of many schedules, and the outcomes of each day beside the slots of days to come."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any

from sqlalchemy import CompoundSelect, Connection, bindparam, func, literal_column, select, union_all

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.ids import is_id
from lodger.engine.recurrence.on_changes import END
from lodger.engine.recurrence.rule_errors import SearchEnded
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.usage.usage import DAY_US
from lodger.sandbox.outcome import Outcome

#: States of actions that ran.
RAN = ("done", "failed")
#: Maximum number of schedules of one query, and of runs of each. SQLite unites at most 500 queries.
MAX_SCHEDULES, MAX_RUNS = 100, 50
#: Maximum number of slots that are counted for the days to come (five weeks of one a minute), and of gaps that are read.
MAX_SLOTS, MAX_GAPS = 51_000, 500
_DAY = timedelta(days=1)
_a = tables.actions.c
_shown = (_a.schedule_id, _a.id, _a.state, _a.outcome, _a.started_us, _a.finished_us)


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has ended. ``took_ms``: from the start of its last attempt to its end."""

    action_id: str
    state: str
    outcome: Outcome | None
    finished_at: datetime
    took_ms: float


@dataclass(frozen=True, slots=True)
class RecentRuns:
    """The latest runs of a schedule, newest first."""

    schedule_id: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class PastDay:
    """A UTC day that has begun.

    Attributes:
        actions: rows by state; a gap of many slots is one row, on its first day.
        gaps: reasons of the gaps that cover a part of the day.
    """

    day: date
    actions: dict[str, int]
    gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComingDay:
    """Number of slots of a UTC day, those of today that are over included."""

    day: date
    slots: int


@dataclass(frozen=True, slots=True)
class Calendar:
    """Outcomes of past days and slots of coming days, each list ascending and beginning or ending with today.

    Attributes:
        complete: whether every slot of the coming days is counted; otherwise the list ends with the last whole day.
    """

    schedule_id: str
    past: tuple[PastDay, ...]
    coming: tuple[ComingDay, ...]
    complete: bool


def recent(connection: Connection, tenant_id: str | None, schedule_ids: Collection[str], runs: int) -> list[RecentRuns]:
    """Return the latest runs of schedules, in two statements; unknown schedules have none."""
    wanted = sorted({each for each in schedule_ids if is_id(each)})[:MAX_SCHEDULES]
    if not wanted:
        return []
    slotted = connection.execute(_slotted(len(wanted), runs), {f"s{at}": each for at, each in enumerate(wanted)})
    rank = func.row_number().over(partition_by=_a.schedule_id, order_by=_a.id.desc()).label("rank")
    requested = (
        select(*_shown, _a.tenant_id, rank)
        .where(_a.schedule_id.in_(wanted), _a.state.in_(RAN), _a.slot.is_(None))
        .subquery()
    )
    rows = [*slotted, *connection.execute(select(requested).where(requested.c.rank <= runs))]
    by_schedule: dict[str, list[AnyRow]] = {each: [] for each in wanted}
    for row in rows:
        if tenant_id in (None, row.tenant_id) and row.started_us is not None and row.finished_us is not None:
            by_schedule[row.schedule_id].append(row)
    return [RecentRuns(each, _newest(found, runs)) for each, found in by_schedule.items()]


@lru_cache(maxsize=64)
def _slotted(number: int, runs: int) -> CompoundSelect[Any]:
    """Return the query of the latest runs of slots of so many schedules.

    Each of its parts reads its rows from the end of an index; a rank over all rows would read the whole history.
    """
    parts = [
        select(*_shown, _a.tenant_id)
        .where(_a.schedule_id == bindparam(f"s{at}"), _a.state == literal_column(f"'{state}'"), _a.slot.is_not(None))
        .order_by(_a.slot.desc())
        .limit(runs)
        .subquery()
        for at in range(number)
        for state in RAN
    ]
    return union_all(*(select(each) for each in parts))


def _newest(rows: Sequence[AnyRow], runs: int) -> tuple[Run, ...]:
    return tuple(
        Run(
            row.id,
            row.state,
            Outcome(row.outcome) if row.outcome else None,
            from_us(row.finished_us),
            max(0, row.finished_us - row.started_us) / 1000,
        )
        for row in sorted(rows, key=lambda row: (row.finished_us, row.id), reverse=True)[:runs]
    )


def past_days(
    connection: Connection, schedule_id: str, now: datetime, days: int, recurrence: CompiledSchedule
) -> tuple[PastDay, ...]:
    """Return the outcomes of the last days up to today, by the slot of each action, or by its due time if it has none.

    Of a gap the first and the last day count, and between them those on which ``recurrence`` has slots.
    """
    first = _midnight(now) - (days - 1) * _DAY
    since_us = to_us(first)
    of_schedule = (_a.schedule_id == schedule_id, _a.state.in_(("done", "failed", "skipped", "expired", "cancelled")))
    # A label of its own: PostgreSQL takes two equal expressions with parameters for different ones.
    slot_day, due_day = (_a.slot // DAY_US).label("day"), (_a.due_at // DAY_US).label("day")
    slotted = select(slot_day, _a.state, func.count()).where(*of_schedule, _a.slot >= since_us)
    requested = select(due_day, _a.state, func.count()).where(*of_schedule, _a.slot.is_(None), _a.due_at >= since_us)
    counts: dict[int, dict[str, int]] = {}
    for statement in (slotted, requested):
        for day, state, count in connection.execute(statement.group_by("day", _a.state)):
            of_day = counts.setdefault(day, {})
            of_day[state] = of_day.get(state, 0) + count
    gaps = connection.execute(
        select(_a.slot, _a.slot_to, _a.reason)
        .where(_a.schedule_id == schedule_id, _a.state == "skipped", _a.slot_to >= since_us)
        .order_by(_a.slot.desc())
        .limit(MAX_GAPS)
    ).all()
    counted = coming_days(recurrence, first.date(), days)[0] if gaps else ()
    found = []
    for number in range(days):
        day_us = since_us + number * DAY_US
        fires = number >= len(counted) or counted[number].slots > 0
        reasons = {
            row.reason
            for row in gaps
            if row.slot < day_us + DAY_US
            and row.slot_to >= day_us
            and (fires or row.slot >= day_us or row.slot_to < day_us + DAY_US)
        }
        of_day = counts.get(day_us // DAY_US, {})
        found.append(PastDay((first + number * _DAY).date(), dict(sorted(of_day.items())), tuple(sorted(reasons))))
    return tuple(found)


@lru_cache(maxsize=512)
def coming_days(recurrence: CompiledSchedule, today: date, days: int) -> tuple[tuple[ComingDay, ...], bool]:
    """Return the number of slots of today and the days after, and whether all were counted."""
    start = datetime(today.year, today.month, today.day, tzinfo=UTC)
    end = min(start + days * _DAY, END)
    counts: dict[date, int] = {}
    whole, last = days, start
    try:
        for number, slot in enumerate(islice(recurrence.between(start, end), MAX_SLOTS + 1)):
            last = slot
            if number == MAX_SLOTS:
                whole = (slot - start).days
                break
            counts[slot.date()] = counts.get(slot.date(), 0) + 1
    except SearchEnded as out:
        whole = (max(last, out.reached) - start).days
    listed = (start + number * _DAY for number in range(whole))
    return tuple(ComingDay(each.date(), counts.get(each.date(), 0)) for each in listed), whole == days


def _midnight(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
