"""Recomputes the next slots of armed clocks after an update of the time zone data."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam

from lodger.engine.core.clock import from_us
from lodger.engine.recurrence.calendar.zones import tzdata_version
from lodger.engine.store.bulk import update_many
from lodger.engine.store.context import StoreContext
from lodger.engine.store.queue.due import clocks
from lodger.engine.store.schema.scheduling import schedule_clock


@dataclass(frozen=True, slots=True)
class Moved:
    """A next slot that the new zone data moved, in microseconds UTC; ``to_us`` is None if no slot is left."""

    tenant_id: str
    schedule_id: str
    from_us: int
    to_us: int | None


_clock = schedule_clock.c
_stale = (
    clocks.where(_clock.tzdata != bindparam("release"))
    .order_by(_clock.schedule_id)
    .limit(500)
    # Locked, because a concurrent pause or tick would be overwritten.
    .with_for_update(of=schedule_clock)
)
_retime = update_many(
    schedule_clock,
    {"k_tenant": "tenant_id", "k_schedule": "schedule_id"},
    ("next_at", "state", "tzdata", "searching"),
)


def retime(context: StoreContext, connection: Connection) -> tuple[int, list[Moved]]:
    """Update some clocks to the installed release of the zone data; return the number of checked clocks and those that moved.

    Accounted slots stay accounted: the next slot is the first after ``accounted_us`` under the new data.
    """
    release = tzdata_version()
    rows = connection.execute(_stale, {"release": release}).all()
    revisions = context.revision_cache.revisions(
        connection, ((row.tenant_id, row.schedule_id, row.revision) for row in rows)
    )
    moves, moved = [], []
    for row in rows:
        at, state, searching = row.next_at, row.state, bool(row.searching)
        if state == "armed" and revisions[row.schedule_id].fault is None:
            at, searching = revisions[row.schedule_id].next_us(from_us(row.accounted_us))
            state = "ended" if at is None else state
            if at != row.next_at:
                moved.append(Moved(row.tenant_id, row.schedule_id, row.next_at, at))
        moves.append({
            "k_tenant": row.tenant_id, "k_schedule": row.schedule_id, "next_at": at, "state": state, "tzdata": release,
            "searching": int(searching),
        })  # fmt: skip
    _retime.rows(connection, moves)
    return len(rows), moved
