"""Queries on schedules: a schedule with its present revision and clock as one record, its counters and its last run."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, literal_column, select, union_all

from lodger.engine.core.clock import from_us_or_none, to_us
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.ids import is_id
from lodger.engine.recurrence.on_changes import END
from lodger.engine.recurrence.rule import ScheduleRules
from lodger.engine.store import list_filter, pages, short_ids
from lodger.engine.store.drivers import prepared
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.records import AnyRow, Counters, LastRun, Page, Schedule
from lodger.engine.store.revision_cache import decode_rules, zone_of
from lodger.engine.store.rows import record
from lodger.engine.store.schedules import revisions
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.schema.nodes import nodes

#: Number of actions of a schedule that are counted for each state.
MAX_COUNTED = 10_000
#: States of an existing schedule.
STATES = ("armed", "paused", "suspended", "ended")
_s, _r, _k = tables.schedules.c, tables.schedule_revisions.c, tables.schedule_clock.c
_a, _t = tables.actions.c, tables.attempts.c


def get(connection: Connection, tenant_id: str, schedule: str) -> Schedule:
    """Return a schedule by name, id, or the beginning or end of its id (see :mod:`lodger.engine.store.short_ids`).

    Raises:
        NotFound: schedule_unknown.
        InputError: schedule_ambiguous.
    """
    whole, found = schedule, _find(connection, _by_id_or_name if is_id(schedule) else _by_name, tenant_id, schedule)
    if not found and (whole := short_ids.schedule_id(connection, tenant_id, schedule)) != schedule:
        found = _find(connection, _by_id_or_name, tenant_id, whole)
    if not found:
        raise NotFound("schedule_unknown", tenant=tenant_id, schedule=schedule)
    return next((each for each in found if each.id == whole), found[0])


def rules_of(connection: Connection, tenant_id: str, name: str) -> ScheduleRules | None:
    """Return the present rules of the schedule with this name, None if there is none; the last statement of a read."""
    prepared.last(connection)
    which = (_s.tenant_id == tenant_id, _s.deleted_us.is_(None), _s.name == name)
    joined = (_r.tenant_id == _s.tenant_id) & (_r.schedule_id == _s.id) & (_r.revision == _s.revision)
    found = connection.scalar(
        select(_r.rules).join_from(tables.schedules, tables.schedule_revisions, joined).where(*which)
    )
    return None if found is None else decode_rules(found)


def language() -> list_filter.Language:
    """Return the filter language of lists of schedules."""
    name, script = _s.name, tables.scripts.c.name
    return list_filter.Language(
        fields={
            "tenant": list_filter.named(_s.tenant_id),
            "name": list_filter.named(name),
            "script": list_filter.named(script),
            "state": list_filter.one_of(_k.state, STATES, "state_unknown"),
            "label": list_filter.label(_r.requires),
            "overlap": list_filter.named(_r.overlap),
            "missed": list_filter.named(_r.missed),
            "note": list_filter.contains(_s.note),
            "params": list_filter.in_json(_r.params),
            "failures": lambda value, _now: _s.failures >= _whole(value),
            "since": list_filter.since(_k.next_at),
            "until": list_filter.until(_k.next_at),
        },
        words=list_filter.contains(name, script, _s.note),
        sorts={
            "tenant": _s.tenant_id,
            "name": name,
            "next": func.coalesce(_k.next_at, _END_US),
            "created": _s.created_us,
            "failures": _s.failures,
        },
        tie=(_s.tenant_id, name),
    )


def _whole(text: str) -> int:
    """Return the whole number that a term of a filter has; raises InputError."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError("filter_invalid.number", text=text)
    return int(text)


def identities(tenant_id: str | None, found: list_filter.Filter) -> Select[Any]:
    """Return the statement of the tenants and ids of the schedules that match."""
    which = [_s.deleted_us.is_(None), *found.conditions]
    return _joined(tenant_id).where(*which).with_only_columns(_s.tenant_id, _s.id)


def list_page(
    connection: Connection,
    tenant_id: str | None,
    found: list_filter.Filter,
    limit: int | None,
    cursor: str | None,
) -> Page[Schedule]:
    """Return a page of the schedules of a tenant, or of all, that match a filter."""
    of, statement = f"schedules:{tenant_id}:{found.text}", _joined(tenant_id).where(_s.deleted_us.is_(None))
    return pages.read(connection, of, found, statement, partial(_schedules, connection), limit, cursor)


def deleted(connection: Connection, tenant_id: str, schedule_id: str) -> Schedule:
    """Return a deleted schedule by id."""
    return _find(connection, _by_id, tenant_id, schedule_id)[0]


def _joined(tenant_id: Any) -> Select[Any]:
    """Select schedules with their current revisions and clocks, each looked up by its key."""
    script = tables.scripts.c
    # An expression, or PostgreSQL would join rows of the same tenant first, which it expects to be one.
    tenant = _s.tenant_id.concat(literal_column("''"))
    statement = (
        select(
            tables.schedules, _r.rules, _r.sentence, _r.missed, _r.overlap, _r.retry, _r.limits, _r.params, _r.conduct, _r.steps, _r.grants,
            _k.state, _k.next_at, _k.searching, _k.wake_at, script.name.label("script"),
        )
        .join_from(
            tables.schedules, tables.schedule_revisions,
            (_r.tenant_id == tenant) & (_r.schedule_id == _s.id) & (_r.revision == _s.revision),
        )
        .join(tables.schedule_clock, (_k.tenant_id == tenant) & (_k.schedule_id == _s.id))
        .join(tables.scripts, (script.tenant_id == tenant) & (script.id == _s.script_id))
    )  # fmt: skip
    return statement if tenant_id is None else statement.where(_s.tenant_id == tenant_id)


def _with(*which: ColumnElement[bool]) -> Prepared:
    """Return the statement of the schedules of a tenant that satisfy conditions, by name."""
    return Prepared(lambda _driver: _joined(bindparam("tenant")).where(*which).order_by(_s.tenant_id, _s.name))


_by_name = _with(_s.name == bindparam("called"), _s.deleted_us.is_(None))
_by_id_or_name = _with((_s.id == bindparam("called")) | (_s.name == bindparam("called")), _s.deleted_us.is_(None))
_by_id = _with(_s.id == bindparam("called"))


def _find(connection: Connection, statement: Prepared, tenant_id: str, called: str) -> list[Schedule]:
    """Return the schedules of a tenant with a name or an id."""
    return _schedules(connection, statement.rows(connection, {"tenant": tenant_id, "called": called}))


def _schedules(connection: Connection, rows: Sequence[AnyRow]) -> list[Schedule]:
    """Return the schedules of rows, with the names of their scripts."""
    named = revisions.step_names(connection, rows)
    return [_schedule(row, named) for row in rows]


_END_US = to_us(END)


def _schedule(row: AnyRow, named: Mapping[str, str]) -> Schedule:
    """Return the schedule of a row."""
    rules = decode_rules(row.rules)
    return record(
        Schedule,
        row,
        next_at=None if row.searching or row.next_at == _END_US else from_us_or_none(row.next_at),
        searched_to=from_us_or_none(row.next_at) if row.searching else None,
        text=row.sentence,
        steps=revisions.show_steps(row, named),
        rules=rules,
        tz=zone_of(rules),
        **revisions.show_policies(row),
    )


def counters(connection: Connection, schedule: Schedule) -> Counters:
    """Count a schedule's actions by state, and the skipped ones by reason: of each state the newest :data:`MAX_COUNTED`."""
    newest = [
        select(_a.state, _a.reason, _a.due_at)
        .where(_a.schedule_id == schedule.id, _a.state == literal_column(f"'{state}'"))
        .order_by(_a.slot.desc())
        .limit(MAX_COUNTED)
        .subquery()
        for state in tables.STATES
    ]
    counted = union_all(*(select(each) for each in newest)).subquery()
    rows = connection.execute(
        select(counted.c.state, counted.c.reason, func.count(), func.min(counted.c.due_at)).group_by(
            counted.c.state, counted.c.reason
        )
    ).all()
    actions: dict[str, int] = {}
    for state, _reason, number, _oldest in rows:
        actions[state] = actions.get(state, 0) + number
    return Counters(
        schedule_id=schedule.id,
        actions=actions,
        skipped={reason: number for state, reason, number, _oldest in rows if state == "skipped"},
        failures=schedule.failures,
        since=from_us_or_none(min((oldest for *_others, oldest in rows), default=None)),
        complete=all(number < MAX_COUNTED for number in actions.values()),
    )


#: Found by the end of an index, whatever the length of the history.
_last_run = (
    select(_a.id, _a.slot, _a.due_at, _a.state, _a.outcome, _a.started_us, _a.finished_us, nodes.c.name)
    .outerjoin_from(
        tables.actions, tables.attempts, (_t.tenant_id == _a.tenant_id) & (_t.action_id == _a.id) & (_t.n == _a.attempt)
    )
    # The node of a running action is in its own row.
    .outerjoin(nodes, nodes.c.id == func.coalesce(_a.node_id, _t.node_id))
    .where(_a.schedule_id == bindparam("schedule"), _a.started_us.is_not(None))
    .order_by(_a.started_us.desc(), _a.id.desc())
    .limit(1)
)


def last_run(connection: Connection, schedule_id: str) -> LastRun | None:
    """Return the latest started run of this schedule, None if there is none."""
    row = connection.execute(_last_run, {"schedule": schedule_id}).first()
    if row is None:
        return None
    return record(LastRun, row, action_id=row.id, node=row.name or "")
