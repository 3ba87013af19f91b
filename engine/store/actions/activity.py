"""Activity of the last hours in sixty parts: ended actions with their lateness, failures by outcome, and the actions due now."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from lodger.engine.core.clock import from_us
from lodger.engine.policy.plan import CAUGHT_UP
from lodger.engine.store.actions import actions as past
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers.expressions import indexed_by
from lodger.engine.store.queue.ready_queue import GRACE_US
from lodger.engine.store.records import Action
from lodger.engine.store.schema.scheduling import (
    FAILED,
    actions,
    is_held,
    is_running,
    is_startable,
    schedule_clock,
)

MINUTE_US = 60_000_000
#: Parts of the time; of an hour, minutes.
PARTS = 60
MAX_HOURS = 720
#: Parts that still change: the present one, and the one before it, whose last commits may be under way.
OPEN_PARTS = 2
#: Maximum number of actions that one statement reads; older ones follow with the next call.
MAX_ROWS = 100_000
#: Parts kept of all tenants together.
KEPT = 20_000
MAX_FAILURES = 10
#: Upper bounds of the buckets of lateness, milliseconds. Between two of them percentiles are interpolated.
BOUNDS_MS = (
    *(step * decade for decade in (1, 10, 100, 1000, 10_000) for step in (1, 2, 3, 5, 7)),
    *(100_000, 300_000, 900_000, 3_600_000, 86_400_000),
)
_a = actions.c


@dataclass(frozen=True, slots=True)
class ActivityPart:
    """The actions that ended in one part of the time.

    Attributes:
        failed: failed or expired ones; ``done`` does not include them.
        late_p50_ms, late_p99_ms: percentiles of lateness without actions that were caught up, interpolated within buckets; None
            if no action started.
    """

    start: datetime
    done: int
    failed: int
    late_p50_ms: float | None
    late_p99_ms: float | None


@dataclass(frozen=True, slots=True)
class Activity:
    """Numbers of running and due actions, and the last hours in sixty parts.

    Attributes:
        running: attempts that run.
        due: actions and slots that have not started although their time has come, overdue ones included.
        overdue: those among them that have been due for more than ten seconds.
        parts: sixty of ``part_s`` seconds, oldest first; the last one has not ended.
        complete_from: actions that ended before this instant are not counted yet: a busy time is read in several calls.
        done, failed: over these parts.
        late_p50_ms, late_p99_ms: over these parts.
        caught_up: actions of missed slots, which count for no lateness.
        outcomes: failed actions by outcome, or by the reason if no attempt ended.
        failures: the latest failed actions of that time.
    """

    at: datetime
    running: int
    due: int
    overdue: int
    part_s: int
    parts: tuple[ActivityPart, ...]
    complete_from: datetime
    done: int
    failed: int
    late_p50_ms: float | None
    late_p99_ms: float | None
    caught_up: int
    outcomes: dict[str, int]
    failures: tuple[Action, ...]


#: Buckets of actions that did not start, and of those of missed slots.
_NOT_STARTED, _CAUGHT_UP = -1, -2
#: Number of actions by state, outcome or reason, and bucket of lateness.
Tally = Counter[tuple[str, str | None, int]]


def _ended(*, of_tenant: bool) -> sa.Select[Any]:
    """Select state, reason and lateness of ended actions in a range of time."""
    latest = (
        sa.select(
            _a.finished_us,
            _a.state,
            sa.func.coalesce(_a.outcome, _a.reason).label("why"),
            _a.started_us,
            _a.due_at,
            _a.reason,
        )
        .where(_a.finished_us >= sa.bindparam("since"), _a.finished_us < sa.bindparam("until"))
        .order_by(_a.finished_us.desc())
        .limit(sa.bindparam("maximum"))
    )
    if of_tenant:
        latest = latest.where(_a.tenant_id == sa.bindparam("tenant"))
    # By the tenant SQLite would read its whole history.
    each = indexed_by(latest, actions, "ix_lodger_actions_finished").subquery("latest").c
    late = each.started_us - each.due_at
    known = each.started_us.is_not(None) & (late >= 0)
    bounds = ((late <= bound * 1000, sa.literal(number)) for number, bound in enumerate(BOUNDS_MS))
    apart = ((~known, sa.literal(_NOT_STARTED)), (each.reason == CAUGHT_UP, sa.literal(_CAUGHT_UP)))
    bucket = sa.case(*apart, *bounds, else_=sa.literal(len(BOUNDS_MS)))
    part = (each.finished_us // sa.bindparam("part_us", type_=sa.BigInteger)).label("part")
    columns = (part, each.state, each.why, bucket.label("bucket"))
    return sa.select(*columns, sa.func.count()).group_by(*columns)


_ENDED = {each: _ended(of_tenant=each) for each in (False, True)}


def read(
    context: StoreContext,
    connection: sa.Connection,
    tenant_id: str | None,
    generation: int,
    now_us: int,
    hours: int = 1,
) -> Activity:
    """Return the activity of a tenant, or of all for None, over so many hours."""
    part_us = hours * MINUTE_US
    last = now_us // part_us
    first, reopened = last - PARTS + 1, last - OPEN_PARTS + 1
    kept, owner = context.ended, (tenant_id, generation, hours)
    tallies = _read(connection, tenant_id, part_us, reopened, last + 1)
    older = [part for part in range(first, reopened) if (*owner, part) not in kept]
    if older:
        found = _read(connection, tenant_id, part_us, older[0], older[-1] + 1)
        while len(kept) > KEPT:
            kept.pop(next(iter(kept)), None)
        kept.update({(*owner, part): tally for part, tally in found.items()})
    for part in range(first, reopened):
        if (*owner, part) in kept:
            tallies[part] = kept[(*owner, part)]
    complete = last
    while complete > first and complete - 1 in tallies:
        complete -= 1
    known = [tallies.get(part, Counter()) for part in range(first, last + 1)]
    whole: Tally = sum(known, Counter())
    return Activity(
        from_us(now_us), *_now(connection, tenant_id, now_us), part_us // 1_000_000,
        tuple(_part((first + number) * part_us, tally) for number, tally in enumerate(known)), from_us(complete * part_us),
        _number(whole, ("done",)), _number(whole, FAILED), _percentile(whole, 0.5), _percentile(whole, 0.99),
        sum(number for (_state, _why, bucket), number in whole.items() if bucket == _CAUGHT_UP), _outcomes(whole),
        tuple(past.failed_since(connection, tenant_id, first * part_us, MAX_FAILURES) if _number(whole, FAILED) else ()),
    )  # fmt: skip


def _read(connection: sa.Connection, tenant_id: str | None, part_us: int, first: int, end: int) -> dict[int, Tally]:
    """Tally the parts from ``first`` to before ``end``; the oldest are absent if there are more actions than MAX_ROWS."""
    asked = {
        "since": first * part_us,
        "until": end * part_us,
        "part_us": part_us,
        "maximum": MAX_ROWS,
        "tenant": tenant_id,
    }
    rows = connection.execute(_ENDED[tenant_id is not None], asked).all()
    found: dict[int, Tally] = {part: Counter() for part in range(first, end)}
    for part, state, why, bucket, number in rows:
        found[part][state, why, bucket] += number
    if sum(row[-1] for row in rows) >= MAX_ROWS:
        oldest = min(row[0] for row in rows)  # was cut, unless it is the only one
        found = {part: tally for part, tally in found.items() if part > min(oldest, end - 2)}
    return found


def _part(start_us: int, tally: Tally) -> ActivityPart:
    """Return one part of the activity from its tally."""
    return ActivityPart(
        from_us(start_us), _number(tally, ("done",)), _number(tally, FAILED), _percentile(tally, 0.5),
        _percentile(tally, 0.99),
    )  # fmt: skip


def _number(tally: Tally, states: Iterable[str]) -> int:
    """Count the actions of a tally in these states."""
    return sum(number for (state, _why, _bucket), number in tally.items() if state in states)


def _outcomes(tally: Tally) -> dict[str, int]:
    """Count the failed actions of a tally by outcome or state."""
    found: Counter[str] = Counter()
    for (state, why, _bucket), number in tally.items():
        if state in FAILED:
            found[why or state] += number
    return dict(found.most_common())


def _percentile(tally: Tally, part: float) -> float | None:
    """Return the percentile ``part`` (0 to 1) of lateness in milliseconds, None without any; beyond the last bound, that bound."""
    numbers: Counter[int] = Counter()
    for (_state, _why, bucket), number in tally.items():
        if bucket >= 0:
            numbers[bucket] += number
    wanted, seen = part * numbers.total(), 0
    for bucket in sorted(numbers):
        if seen + numbers[bucket] >= wanted:
            below = BOUNDS_MS[bucket - 1] if bucket else 0
            upper = BOUNDS_MS[min(bucket, len(BOUNDS_MS) - 1)]
            return round(below + (upper - below) * (wanted - seen) / numbers[bucket], 3)
        seen += numbers[bucket]
    return None


_clock = schedule_clock.c


def _now(connection: sa.Connection, tenant_id: str | None, now_us: int) -> tuple[int, int, int]:
    """Return how many attempts run, and how many actions and slots are due and overdue, by one statement."""

    def count_actions(index: str, *conditions: sa.ColumnElement[bool] | sa.TextClause) -> sa.ScalarSelect[int]:
        """Return the query that counts the tenant's actions with these conditions; by the tenant SQLite would read its whole history."""
        mine = () if tenant_id is None else (_a.tenant_id == tenant_id,)
        counted = sa.select(sa.func.count()).select_from(actions).where(*conditions, *mine)
        return indexed_by(counted, actions, f"ix_lodger_actions_{index}").scalar_subquery()

    def count_due_slots(before_us: int) -> sa.ScalarSelect[int]:
        """Return the query that counts the tenant's schedules whose next slot was due before an instant."""
        mine = () if tenant_id is None else (_clock.tenant_id == tenant_id,)
        due = (_clock.next_at <= before_us, _clock.searching == 0)
        return sa.select(sa.func.count()).select_from(schedule_clock).where(*due, *mine).scalar_subquery()

    counted = [
        count_actions("startable", is_startable, _a.due_at <= before)
        + count_actions("held", is_held, _a.due_at <= before)
        + count_due_slots(before)
        for before in (now_us, now_us - GRACE_US)
    ]
    row: tuple[int, int, int] = connection.execute(
        sa.select(count_actions("running", is_running), counted[0], counted[1])
    ).one()
    return row
