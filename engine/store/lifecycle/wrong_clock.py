"""Rows that were written while a clock was set too far ahead: found, and brought back.

A row is known by an instant of the past that lies in the future. Brought back means that all its instants move by as much as that one is
ahead, so that a lease, a token or a retry lasts as long as it was meant to. Occurrences of schedules that have not come are removed, and
their schedules go on after the last one that has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Table, and_, bindparam, delete, func, or_, select, update

from lodger.engine.core.clock import from_us
from lodger.engine.core.ids import first_id_at, id_time_us
from lodger.engine.store.bulk import update_row
from lodger.engine.store.context import StoreContext
from lodger.engine.store.queue.due import clocks
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.schema.access import sign_in_codes
from lodger.engine.store.schema.nodes import nodes

#: How far ahead an instant of the past may lie: clocks of several machines differ.
TOLERANCE_US = 60_000_000
#: How long a sign-in code is valid at most.
LONGEST_CODE_US = 3_600_000_000
#: Columns that say when something happened. Other instants say when something will, or until when.
_PAST = frozenset(
    {
        "bound_us", "closed_us", "created_us", "deleted_us", "finished_us", "forgotten_us", "freed_us", "last_us", "made_us", "opened_us",
        "paused_us", "revoked_us", "sealed_us", "seen_us", "sent_us", "served_us", "started_us", "suspended_us", "taken_us", "updated_us",
        "used_us", "written_us",
    }
)  # fmt: skip
_a, _k = tables.actions.c, tables.schedule_clock.c


@dataclass(frozen=True, slots=True)
class Ahead:
    """Rows of one table that were written in the future, or stand there because of that."""

    table: str
    rows: int


def last_written_us(connection: Connection) -> int:
    """Return when nodes were last seen or finished an action, in microseconds since 1970; 0 if never. Reads two ends of indexes."""
    seen = connection.scalar(select(func.max(nodes.c.seen_us))) or 0
    finished = connection.scalar(select(func.max(_a.finished_us)).where(_a.finished_us.is_not(None))) or 0
    return max(int(seen), int(finished))


def last_accounted_us(connection: Connection, now_us: int) -> int:
    """Return until when a schedule's slots are accounted that has a next slot in the future, if that is in the future itself; else 0."""
    limit_us = now_us + TOLERANCE_US
    ahead = select(_k.accounted_us).where(_k.next_at > limit_us, _k.accounted_us > limit_us).limit(1)
    return int(connection.scalar(ahead) or 0)


def find(connection: Connection, now_us: int) -> list[Ahead]:
    """Return the tables with rows that :func:`bring_back` changes; reads all of them."""
    limit_us = now_us + TOLERANCE_US
    counts = {table.name: _count(connection, table, _is_ahead(table, limit_us)) for table in _dated()}
    counts[tables.actions.name] = len(_actions_ahead(connection, limit_us))
    counts[tables.schedule_clock.name] = _count(connection, tables.schedule_clock, _k.accounted_us > limit_us)
    return [Ahead(name, rows) for name, rows in sorted(counts.items()) if rows]


def bring_back(context: StoreContext, connection: Connection, now_us: int) -> list[Ahead]:
    """Bring back every row that :func:`find` names, in this transaction; nothing else changes, and no finished action is deleted."""
    limit_us = now_us + TOLERANCE_US
    found = find(connection, now_us)
    _remove_occurrences(connection, limit_us)
    _return_actions(connection, limit_us, now_us)
    for table in _dated():
        _return_rows(connection, table, limit_us, now_us)
    _return_clocks(context, connection, limit_us)
    turns, codes = tables.turns, sign_in_codes
    connection.execute(delete(codes).where(codes.c.expires_us > limit_us + LONGEST_CODE_US))
    connection.execute(update(turns).where(turns.c.startable_at > limit_us).values(startable_at=now_us))
    return found


def _dated() -> Iterator[Table]:
    """Yield the tables whose rows say when they were written, but for those with rules of their own and those that only grow."""
    apart = {tables.actions.name, tables.schedule_clock.name, "lodger_audit", "lodger_changes"}
    for table in tables.actions.metadata.sorted_tables:
        if table.name not in apart and list(_past(table)):
            yield table


def _past(table: Table) -> Iterator[Column[Any]]:
    """Return the columns of a table that hold past instants."""
    return (column for column in table.columns if column.name in _PAST and isinstance(column.type, BigInteger))


def _is_ahead(table: Table, limit_us: int) -> Any:
    """Return the condition that an instant of the past in a row lies after a limit."""
    return or_(*(column > limit_us for column in _past(table)))


def _actions_ahead(connection: Connection, limit_us: int) -> list[AnyRow]:
    """Return slots and gaps in the future, actions that ran there, and requests that were made there.

    A request that a clock ahead made is due after its own id was made; once brought back, it is not any more.
    """
    slot = and_(_a.origin == "slot", or_(_a.slot > limit_us, _a.slot_to > limit_us))
    ran = or_(_a.started_us > limit_us, _a.finished_us > limit_us)
    made = and_(_a.id >= first_id_at(limit_us), _a.due_at > limit_us)
    rows = connection.execute(select(tables.actions).where(or_(slot, ran, made))).all()
    return [
        row
        for row in rows
        if row.origin == "slot" or (row.started_us or 0) > limit_us or row.due_at >= id_time_us(str(row.id))
    ]


def _count(connection: Connection, table: Table, condition: Any) -> int:
    """Count the rows that satisfy a condition."""
    return int(connection.scalar(select(func.count()).select_from(table).where(condition)) or 0)


def _remove_occurrences(connection: Connection, limit_us: int) -> None:
    """Remove slots and gaps in the future that have not run: they have not come."""
    come = ("done", "failed", "cancelled")
    gone = [row for row in _actions_ahead(connection, limit_us) if row.origin == "slot" and row.state not in come]
    keys = [{"tenant": row.tenant_id, "action": row.id} for row in gone if max(row.slot, row.slot_to or 0) > limit_us]
    for table in tables.actions.metadata.sorted_tables if keys else ():
        if table is not tables.actions and "action_id" in table.c and "tenant_id" in table.c:
            connection.execute(
                delete(table).where(table.c.tenant_id == bindparam("tenant"), table.c.action_id == bindparam("action")),
                keys,
            )
    if keys:
        connection.execute(
            delete(tables.actions).where(_a.tenant_id == bindparam("tenant"), _a.id == bindparam("action")), keys
        )


def _return_actions(connection: Connection, limit_us: int, now_us: int) -> None:
    """Move the other actions' instants; a slot that has run keeps its row, as a run that was requested."""
    instants = (_a.slot, _a.due_at, _a.expires_at, _a.started_us, _a.deadline_us, _a.finished_us)
    for row in _actions_ahead(connection, limit_us):
        ahead_us = max(row.started_us or 0, row.finished_us or 0) or id_time_us(str(row.id))
        moved = {column.name: _moved(row._mapping[column.name], ahead_us, limit_us, now_us) for column in instants}
        if row.started_us is not None:  # it has come, whenever it was meant to
            moved["due_at"] = min(moved["due_at"] or 0, moved["started_us"] or 0)
        is_slot = row.origin == "slot" and row.slot > limit_us
        values = moved | ({"origin": "once", "slot": moved["due_at"]} if is_slot else {})
        update_row(connection, tables.actions, row.tenant_id, row.id, **values)


def _return_rows(connection: Connection, table: Table, limit_us: int, now_us: int) -> None:
    """Move the instants of a table's rows in the future back to now, planned ones by as much."""
    past = list(_past(table))
    plans = [each for each in table.columns if each.name.endswith(("_us", "_at")) and each.name not in _PAST]
    keys = list(table.primary_key.columns)
    for row in connection.execute(select(*keys, *past, *plans).where(_is_ahead(table, limit_us))).all():
        ahead_us = max(row._mapping[column.name] or 0 for column in past)
        moved = {
            column.name: _moved(row._mapping[column.name], ahead_us, limit_us, now_us) for column in (*past, *plans)
        }
        update_row(connection, table, *(row._mapping[key.name] for key in keys), **moved)


def _moved(instant_us: int | None, ahead_us: int, limit_us: int, now_us: int) -> int | None:
    """Move an instant by as much as ``ahead_us`` lies ahead; one that was planned for an earlier future stays."""
    stays = instant_us is None or instant_us <= limit_us or instant_us < ahead_us - TOLERANCE_US
    return instant_us if stays or instant_us is None else instant_us - (ahead_us - now_us)


def _return_clocks(context: StoreContext, connection: Connection, limit_us: int) -> None:
    """Let schedules go on after their last slot that has come, or after their beginning; their missed-slot policy decides the rest."""
    rows = connection.execute(clocks.where(_k.accounted_us > limit_us).with_for_update(of=tables.schedule_clock)).all()
    for tenant_id in {row.tenant_id for row in rows}:
        context.forget(tenant_id)  # what a revision counts from may have moved
    found = context.revision_cache.revisions(
        connection, ((row.tenant_id, row.schedule_id, row.revision) for row in rows)
    )
    for row in rows:
        revision = found[row.schedule_id]
        last_us = connection.scalar(
            select(func.max(func.coalesce(_a.slot_to, _a.slot))).where(
                _a.schedule_id == row.schedule_id, _a.origin == "slot"
            )
        )
        begun_us = connection.scalar(
            select(tables.schedules.c.created_us).where(tables.schedules.c.id == row.schedule_id)
        )
        accounted_us = last_us or begun_us or 0
        values: dict[str, Any] = {"accounted_us": accounted_us, "last_slot_us": last_us}
        if row.state in {"armed", "ended"} and revision.fault is None:
            at_us, searching = revision.next_us(from_us(accounted_us))
            values |= {"searching": int(searching), "state": "ended" if at_us is None else "armed", "next_at": at_us}
        update_row(connection, tables.schedule_clock, row.tenant_id, row.schedule_id, **values)


def describe(found: list[Ahead]) -> str:
    """Return a sentence about the rows that were written in the future."""
    return "a clock that was ahead has written " + ", ".join(f"{each.rows} rows of {each.table}" for each in found)
