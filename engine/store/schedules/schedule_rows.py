"""Reads schedules: the row, its present revision and its clock, as one record."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, tuple_

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.errors import NotFound
from lodger.engine.core.ids import is_id
from lodger.engine.recurrence.on_changes import END
from lodger.engine.store.pages import Cut, read
from lodger.engine.store.records import AnyRow, Schedule
from lodger.engine.store.revision_cache import decode_rules, zone_of
from lodger.engine.store.schedules import revisions
from lodger.engine.store.schema import scheduling as tables

_s, _r, _k = tables.schedules.c, tables.schedule_revisions.c, tables.schedule_clock.c


def get(connection: Connection, tenant_id: str, schedule: str) -> Schedule:
    """Give a schedule by id or name.

    Raises:
        NotFound: schedule_unknown.
    """
    called = (_s.id == schedule) | (_s.name == schedule) if is_id(schedule) else _s.name == schedule
    found = _read(connection, tenant_id, [called, _s.deleted_us.is_(None)])
    if not found:
        raise NotFound("schedule_unknown", f"tenant {tenant_id!r} has no schedule {schedule!r}", fix="create it first")
    return next((each for each in found if each.id == schedule), found[0])


def some(
    connection: Connection,
    tenant_id: str | None,
    *,
    after: tuple[str, str] | None = None,
    limit: int | None = None,
    state: str | None = None,
) -> Cut[Schedule]:
    """Give the schedules of a tenant, or of all, by tenant and name; those behind ``after``, a tenant and a name."""
    which: list[Any] = [_s.deleted_us.is_(None)]
    if after is not None:
        which.append(tuple_(_s.tenant_id, _s.name) > tuple_(*after))
    if state is not None:
        which.append(_k.state == state)
    return _read(connection, tenant_id, which, limit)


def deleted(connection: Connection, tenant_id: str, schedule_id: str) -> Schedule:
    """Give a schedule that was deleted, by id."""
    return _read(connection, tenant_id, [_s.id == schedule_id])[0]


def _read(connection: Connection, tenant_id: str | None, which: list[Any], limit: int | None = None) -> Cut[Schedule]:
    script = tables.scripts.c
    statement = (
        select(
            tables.schedules, _r.rules, _r.sentence, _r.missed, _r.overlap, _r.retry, _r.limits, _r.params, _r.conduct, _r.steps, _r.grants,
            _k.state, _k.next_at, _k.searching, _k.wake_at, script.name.label("script"),
        )
        .join_from(
            tables.schedules, tables.schedule_revisions,
            (_r.tenant_id == _s.tenant_id) & (_r.schedule_id == _s.id) & (_r.revision == _s.revision),
        )
        .join(tables.schedule_clock, (_k.tenant_id == _s.tenant_id) & (_k.schedule_id == _s.id))
        .join(tables.scripts, (script.tenant_id == _s.tenant_id) & (script.id == _s.script_id))
        .where(*which)
        .order_by(_s.tenant_id, _s.name)
    )  # fmt: skip
    if tenant_id is not None:
        statement = statement.where(_s.tenant_id == tenant_id)

    def made(rows: list[AnyRow]) -> list[Schedule]:
        named = revisions.step_names(connection, rows)
        return [_schedule(row, named) for row in rows]

    return read(connection, statement, limit, made)


_END_US = to_us(END)


def _schedule(row: AnyRow, named: Mapping[str, str]) -> Schedule:
    rules = decode_rules(row.rules)
    return Schedule(
        id=row.id,
        tenant_id=row.tenant_id,
        name=row.name,
        state=row.state,
        # A schedule that runs on changes alone waits for no instant.
        next_at=None if row.searching or row.next_at == _END_US else _instant(row.next_at),
        searched_to=_instant(row.next_at) if row.searching else None,
        text=row.sentence,
        revision=row.revision,
        script=row.script,
        steps=revisions.steps_told(row, named),
        rules=rules,
        tz=zone_of(rules),
        failures=row.failures,
        note=row.note,
        wake_at=_instant(row.wake_at),
        created_at=from_us(row.created_us),
        **revisions.terms_told(row),
    )


def _instant(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)
