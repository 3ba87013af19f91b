"""A schedule's past at a glance: the latest runs of many schedules, and the outcomes of each day beside the slots of days to come."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import CompoundSelect, Connection, bindparam, func, literal_column, select, union_all

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.ids import is_id
from lodger.engine.recurrence.calendar.zones import python_zone, zone
from lodger.engine.recurrence.on_changes import END
from lodger.engine.recurrence.rule_errors import SearchEnded
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.store.records import AnyRow
from lodger.engine.store.rows import record
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
_EPOCH = date(1970, 1, 1)
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
    """A day of the schedule's zone that has begun.

    Attributes:
        actions: rows by state; a gap of many slots is one row, on its first day.
        gaps: reasons of the gaps that cover a part of the day.
    """

    day: date
    actions: dict[str, int]
    gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComingDay:
    """Number of slots of a day of the schedule's zone, those of today that are over included."""

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
    """Return the latest runs from their rows."""
    return tuple(
        record(Run, row, action_id=row.id, took_ms=max(0, row.finished_us - row.started_us) / 1000)
        for row in sorted(rows, key=lambda row: (row.finished_us, row.id), reverse=True)[:runs]
    )


def past_days(
    connection: Connection, schedule_id: str, now: datetime, days: int, recurrence: CompiledSchedule, tz: str
) -> tuple[PastDay, ...]:
    """Return the outcomes of the last days of a zone up to today, by the slot of each action, or by its due time if it has none.

    Of a gap the first and the last day count, and between them those on which ``recurrence`` has slots.
    """
    local = python_zone(tz)
    first = now.astimezone(local).date() - (days - 1) * _DAY
    bounds = [_midnight_us(first + number * _DAY, local) for number in range(days + 1)]
    of_schedule = (_a.schedule_id == schedule_id, _a.state.in_(("done", "failed", "skipped", "expired", "cancelled")))
    counts: dict[date, dict[str, int]] = {}
    for since_us, until_us, offset_us in _offsets(bounds[0], bounds[-1], tz):
        for column, which in ((_a.slot, _a.slot.is_not(None)), (_a.due_at, _a.slot.is_(None))):
            # A label of its own: PostgreSQL takes two equal expressions with parameters for different ones.
            day = ((column + offset_us) // DAY_US).label("day")
            within = (which, column >= since_us, column < until_us)
            statement = select(day, _a.state, func.count()).where(*of_schedule, *within).group_by("day", _a.state)
            for number, state, count in connection.execute(statement):
                of_day = counts.setdefault(_EPOCH + number * _DAY, {})
                of_day[state] = of_day.get(state, 0) + count
    gaps = connection.execute(
        select(_a.slot, _a.slot_to, _a.reason)
        .where(_a.schedule_id == schedule_id, _a.state == "skipped", _a.slot_to >= bounds[0])
        .order_by(_a.slot.desc())
        .limit(MAX_GAPS)
    ).all()
    counted = coming_days(recurrence, first, days, tz)[0] if gaps else ()
    found = []
    for number, (day_us, end_us) in enumerate(pairwise(bounds)):
        fires = number >= len(counted) or counted[number].slots > 0
        reasons = {
            row.reason
            for row in gaps
            if row.slot < end_us and row.slot_to >= day_us and (fires or row.slot >= day_us or row.slot_to < end_us)
        }
        this = first + number * _DAY
        found.append(PastDay(this, dict(sorted(counts.get(this, {}).items())), tuple(sorted(reasons))))
    return tuple(found)


@lru_cache(maxsize=512)
def coming_days(recurrence: CompiledSchedule, today: date, days: int, tz: str) -> tuple[tuple[ComingDay, ...], bool]:
    """Return the number of slots of today and the days after in a zone, and whether all were counted."""
    local = python_zone(tz)
    start = from_us(_midnight_us(today, local))
    end = min(from_us(_midnight_us(today + days * _DAY, local)), END)
    counts: dict[date, int] = {}
    whole, last = days, start
    try:
        for number, slot in enumerate(islice(recurrence.between(start, end), MAX_SLOTS + 1)):
            last = slot
            here = slot.astimezone(local).date()
            if number == MAX_SLOTS:
                whole = (here - today).days
                break
            counts[here] = counts.get(here, 0) + 1
    except SearchEnded as out:
        whole = (max(last, out.reached).astimezone(local).date() - today).days
    listed = (today + number * _DAY for number in range(whole))
    return tuple(ComingDay(each, counts.get(each, 0)) for each in listed), whole == days


def _midnight_us(day: date, local: ZoneInfo) -> int:
    """Return the first instant of a day of a zone; some zones skip midnight."""
    return to_us(datetime(day.year, day.month, day.day, tzinfo=local).astimezone(UTC))


def _offsets(since_us: int, until_us: int, tz: str) -> Iterator[tuple[int, int, int]]:
    """Yield the stretches of a time with one offset from UTC each, as (start, end, offset)."""
    found, start = zone(tz), since_us
    while start < until_us:
        segment = found.segment(start // 1_000_000)
        end = min(int(segment.end * 1_000_000), until_us)
        yield start, end, segment.offset * 1_000_000
        start = end
