"""Backfills: the slots of a range that did not run become actions that are due now."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice

from sqlalchemy import Connection, or_, select

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.errors import InputError
from lodger.engine.policy.conduct import Priority
from lodger.engine.policy.defaults import whole
from lodger.engine.policy.plan import Overlap
from lodger.engine.recurrence.rule_errors import SearchEnded
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.context import StoreContext
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.queue import ready_queue, schedule_concurrency
from lodger.engine.store.queue.version_pins import newest_versions
from lodger.engine.store.records import AnyRow
from lodger.engine.store.revision_cache import Revision
from lodger.engine.store.schedules import schedules
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.tenants import tenants

_a = tables.actions.c
#: States of a slot's action that did not run.
DID_NOT_RUN = frozenset({"skipped", "expired", "cancelled"})


@dataclass(frozen=True, slots=True)
class Backfill:
    """Result of a backfill. ``left_alone``: slots of the range that had run, were backfilled before, or are not due yet."""

    schedule_id: str
    actions: tuple[str, ...]
    left_alone: int


@dataclass(frozen=True, slots=True)
class BackfillPreview:
    """Preview of a backfill of a range. ``left_alone``: as of :class:`Backfill`.

    Attributes:
        slots: number of slots that would run; ``first`` and ``last`` are None if there is none.
    """

    schedule_id: str
    slots: int
    first: datetime | None
    last: datetime | None
    left_alone: int


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """A schedule with the slots of a range that a backfill runs."""

    schedule_id: str
    clock: AnyRow
    revision: Revision
    run: list[datetime]
    left_alone: int

    def preview(self) -> BackfillPreview:
        """Return the preview of a backfill."""
        first, last = (self.run[0], self.run[-1]) if self.run else (None, None)
        return BackfillPreview(self.schedule_id, len(self.run), first, last, self.left_alone)


def backfill(
    context: StoreContext, connection: Connection, tenant_id: str, schedule: str, between: tuple[int, int], now_us: int
) -> Backfill:
    """Create actions for the slots in [start, end) that did not run: skipped, in a gap, expired, cancelled, or before its creation.

    They are due now, in slot order, with low priority, behind every slot that comes due meanwhile: a backfill does not
    delay live slots.

    Raises:
        InputError: backfill_range, backfill_forgotten, backfill_too_large, backfill_every_node.
    """
    _tenant, found = read_together(
        partial(tenants.require_active, connection, tenant_id),
        partial(plan, context, connection, tenant_id, schedule, between, now_us, lock=True),
        connection=connection,
    )
    clock, revision = found.clock, found.revision
    serially = revision.policies.overlap is not Overlap.ALLOW
    (script_id, version, steps), busy = read_together(
        partial(newest_versions, connection, tenant_id, clock.script_id, revision.steps),
        partial(schedule_concurrency.has_unfinished, connection, found.schedule_id),
        connection=connection,
    )
    held = serially and busy
    rows = []
    for number, slot in enumerate(found.run):
        rows.append({
            "tenant_id": tenant_id, "id": context.ids.new(), "schedule_id": found.schedule_id, "revision": clock.revision,
            "origin": "backfill", "slot": to_us(slot), "due_at": now_us, "state": "ready", "priority": int(Priority.LOW),
            "held": int(held or (serially and number > 0)), "script_id": script_id, "script_version": version, "steps": steps,
            "requires": revision.requires,
        })  # fmt: skip
    if rows:
        insert_many(connection, tables.actions, rows)
        ready_queue.add_queues(connection, [(tenant_id, revision.requires)])
        ready_queue.refresh(connection, [tenant_id])
    return Backfill(found.schedule_id, tuple(str(row["id"]) for row in rows), found.left_alone)


def plan(
    context: StoreContext, connection: Connection, tenant_id: str, schedule: str, between: tuple[int, int], now_us: int,
    *, lock: bool = False,
) -> BackfillPlan:  # fmt: skip
    """Return the slots of a range that a backfill would run; its errors are those of :func:`backfill`."""
    start_us, end_us = between
    found = schedules.get(connection, tenant_id, schedule)
    if not start_us < end_us <= now_us:
        raise InputError("backfill_range")
    known = select(tables.schedules.c.forgotten_us).where(
        tables.schedules.c.tenant_id == tenant_id, tables.schedules.c.id == found.id
    )
    clock, forgotten, ran = read_together(
        lambda: (
            tick.lock_clocks(connection, tenant_id, [found.id])[0]
            if lock
            else tick.clock_of(connection, tenant_id, found.id)
        ),
        partial(connection.scalar, known),
        partial(_ran, connection, found.id, start_us, end_us),
        connection=connection,
    )
    if forgotten is not None and start_us <= forgotten:
        raise InputError("backfill_forgotten", until=from_us(forgotten))
    revision = context.revision_cache.revision(connection, tenant_id, found.id, clock.revision)
    if revision.everywhere:
        raise InputError("backfill_every_node", schedule=found.name)
    slots = _slots(revision, start_us, end_us)
    # Later slots than the accounted ones are those of the next tick.
    run = [slot for slot in slots if to_us(slot) <= clock.accounted_us and to_us(slot) not in ran]
    return BackfillPlan(found.id, clock, revision, run, len(slots) - len(run))


def _slots(revision: Revision, start_us: int, end_us: int) -> list[datetime]:
    """Return the slots of the range."""
    maximum = whole("backfill_max")
    try:
        slots = list(islice(revision.recurrence.between(from_us(start_us), from_us(end_us)), maximum + 1))
    except SearchEnded as out:
        raise InputError("backfill_too_large.slow", end=out.reached, details={"end": out.reached.isoformat()}) from None
    if len(slots) > maximum:
        raise InputError(
            "backfill_too_large", maximum=maximum, end=slots[maximum], details={"end": slots[maximum].isoformat()}
        )
    return slots


def _ran(connection: Connection, schedule_id: str, start_us: int, end_us: int) -> set[int]:
    """Return the slots in [start, end) that ran, or that a backfill has run before, whatever became of it."""
    mine = (
        _a.schedule_id == schedule_id,
        tables.is_slotted,
        _a.slot >= start_us,
        _a.slot < end_us,
        _a.slot_to.is_(None),
    )
    ran = or_(_a.origin == "backfill", _a.state.not_in(DID_NOT_RUN))
    return set(connection.scalars(select(_a.slot).where(*mine, ran)))
