"""Actions by request (once, run now, again), their cancellation, and queries on actions and attempts."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, get_args

import sqlalchemy as sa

from lodger.engine.core.access.labels import NODE, parse_labels, written
from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.ids import is_id
from lodger.engine.core.params import validate_params
from lodger.engine.core.states import Origin
from lodger.engine.policy.conduct import parse_priority
from lodger.engine.policy.plan import Overlap
from lodger.engine.store import list_filter, pages
from lodger.engine.store.bulk import insert_many, update_row
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers.expressions import indexed_by
from lodger.engine.store.lifecycle.running_lines import LogStream, decode_lines
from lodger.engine.store.queue import ready_queue, schedule_concurrency, version_pins
from lodger.engine.store.queue.stops import cancel_where
from lodger.engine.store.records import Action, AnyRow, Attempt, Json, Page
from lodger.engine.store.rows import record
from lodger.engine.store.schedules import schedules
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.scripts import scripts
from lodger.engine.store.scripts.bindings import bind
from lodger.engine.store.signing_keys import decode_cursor
from lodger.engine.store.tenants import tenants
from lodger.engine.store.usage import storage_usage
from lodger.sandbox.job import LogLine, Usage
from lodger.sandbox.outcome import Outcome

_a = tables.actions.c
#: The condition of the indexes of actions that are not done.
is_undone = _a.state != sa.literal_column("'done'")
#: The condition of the indexes of the actions of all tenants, which is true of every action.
_is_of_any_tenant = sa.cast(_a.id, sa.String) != sa.literal_column("''")
FINISHED = ("done", "failed", "cancelled", "skipped", "expired")
STATES = tables.STATES
RETRIED = "retried"
ORIGINS = get_args(Origin)
OUTCOMES = tuple(outcome.value for outcome in Outcome)
#: Latest instant that a request may name: the end of year 9999.
LATEST_US = 253_402_300_799_999_999
#: Most actions that a page of a list, or a count, looks at.
MOST_LOOKED_AT = 10_000
#: Below and above all ids, and all ends of actions.
_EXTREMES = (
    ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    (-1, 2**62),
)


def once(
    context: StoreContext,
    connection: sa.Connection,
    tenant_id: str,
    name: str,
    at_us: int,
    params: Json,
    request_key: str | None,
) -> Action:
    """Store a one-off run of the latest version of the script of a name; an instant in the past is due at once.

    Args:
        request_key: one that :func:`find_request` has found nothing for.

    Raises:
        InputError: instant_out_of_range, params_invalid, params_too_large, params_too_deep.
        NotFound, Conflict: the tenant or the script.
    """
    tenants.require_active(connection, tenant_id)
    if not 0 <= at_us <= LATEST_US:
        raise InputError("instant_out_of_range")
    script = bind(connection, tenant_id, name)
    validate_params(script.fields, params)
    return insert_request(
        context,
        connection,
        {
            "tenant_id": tenant_id,
            "origin": "once",
            "slot": at_us,
            "due_at": at_us,
            "script_id": script.script_id,
            "script_version": script.version,
            "params": scripts.params_text(context, connection, tenant_id, params),
            "request_key": request_key,
            "requires": script.requires,
        },
    )


def run_now(
    context: StoreContext,
    connection: sa.Connection,
    tenant_id: str,
    schedule: str,
    params: Json,
    request_key: str | None,
    now_us: int,
    node: str | None = None,
    origin: str = "run_now",
) -> Action:
    """Run a schedule's script now, outside its slots; it waits for an unfinished action unless overlap is ``allow``.

    Args:
        request_key: one that :func:`find_request` has found nothing for.
        origin: origin of the action, ``change`` for a run on changes.
        node: name of the node to run it; None for any node with the schedule's labels.

    Raises:
        InputError: params_invalid, params_too_large, params_too_deep, label_invalid.
        NotFound, Conflict: schedule_unknown, tenant_suspended.
    """
    tenants.require_active(connection, tenant_id)
    found = schedules.get(connection, tenant_id, schedule)
    script = bind(connection, tenant_id, found.script)
    revision, key = context.revision_cache.revision(connection, tenant_id, found.id, found.revision), node or ""
    if params is not None:
        validate_params(script.fields, params)
    requires = written([*revision.requires.split(), *parse_labels([NODE + key] if key else ())])
    busy = schedule_concurrency.has_unfinished(connection, found.id, key)
    return insert_request(
        context,
        connection,
        {
            "tenant_id": tenant_id,
            "schedule_id": found.id,
            "revision": found.revision,
            "origin": origin,
            "due_at": now_us,
            "priority": parse_priority(found.conduct["priority"]),
            "held": int(busy and found.overlap != Overlap.ALLOW.value),
            "script_id": script.script_id,
            "script_version": version_pins.first_version(revision.steps, script.version),
            "steps": version_pins.pin(connection, tenant_id, revision.steps),
            "params": scripts.params_text(context, connection, tenant_id, params, revision.limits_of(0)),
            "request_key": request_key,
            "node_key": key,
            "requires": requires,
        },
    )


def find_request(connection: sa.Connection, tenant_id: str, request_key: str | None) -> Action | None:
    """Return the action of an earlier request with this key, or None.

    Raises:
        InputError: request_key_invalid.
    """
    if request_key is None:
        return None
    if not 1 <= len(request_key) <= 200 or not request_key.isprintable():
        raise InputError("request_key_invalid")
    rows = _read(connection, _select().where(_a.tenant_id == tenant_id, _a.request_key == request_key))
    return rows[0] if rows else None


def insert_request(context: StoreContext, connection: sa.Connection, values: dict[str, Any]) -> Action:
    """Store a requested run as an action that may start when it is due; return it."""
    action_id = context.ids.new()
    insert_ready(connection, action_id, values)
    ready_queue.refresh(connection, [values["tenant_id"]])
    return get(connection, action_id, values["tenant_id"])


def insert_ready(connection: sa.Connection, action_id: str, values: dict[str, Any]) -> None:
    """Insert a ready action; the caller derives the tenant's ready queue afterwards."""
    insert_many(connection, tables.actions, [{"id": action_id, "state": "ready", **values}])
    storage_usage.add_history(connection, {values["tenant_id"]: storage_usage.size(values["params"])})
    ready_queue.add_queues(connection, [(values["tenant_id"], values["requires"])])


def cancel(connection: sa.Connection, action_id: str, tenant_id: str | None, now_us: int) -> Action:
    """Cancel an unfinished action at once; the worker of a running one is killed within ``poll_s``.

    Raises:
        Conflict: action_over, action_sealed.
    """
    ready_queue.lock(connection, [tenant_id or get(connection, action_id, None).tenant_id])
    action = get(connection, action_id, tenant_id)
    if action.state in FINISHED:
        raise Conflict("action_over", state=action.state)
    if action.state == "sealed":
        raise Conflict("action_sealed")
    cancel_where(connection, (_a.tenant_id == action.tenant_id) & (_a.id == action_id), now_us, "requested")
    if action.schedule_id is not None:
        schedule_concurrency.release(connection, [(action.tenant_id, action.schedule_id, action.node_key)])
    ready_queue.refresh(connection, [action.tenant_id])
    return get(connection, action_id, action.tenant_id)


def retry(context: StoreContext, connection: sa.Connection, tenant_id: str, action_id: str, now_us: int) -> Action:
    """Restart a failed action at its failed step, with its versions, params and results.

    Its retries are counted anew, it does not expire, and it waits for the schedule's unfinished actions unless overlap
    is ``allow``.

    Raises:
        NotFound: action_unknown.
        Conflict: action_not_failed, tenant_suspended.
    """
    active, asked = (
        partial(tenants.require_active, connection, tenant_id),
        partial(row_of, connection, tenant_id, action_id),
    )
    _tenant, row = read_together(active, asked, connection=connection)
    if row.state != "failed":
        raise Conflict("action_not_failed", state=row.state)
    held = False
    if row.schedule_id is not None:
        revision = context.revision_cache.revision(connection, tenant_id, row.schedule_id, row.revision)
        held = revision.policies.overlap is not Overlap.ALLOW and schedule_concurrency.has_unfinished(
            connection, row.schedule_id, row.node_key
        )
    values: dict[str, Any] = {
        "state": "ready", "held": int(held), "due_at": now_us, "reason": RETRIED, "finished_us": None, "expires_at": None,
        "tenant_faults": 0, "engine_faults": 0, "conflicts": 0,
    }  # fmt: skip
    update_row(connection, tables.actions, tenant_id, action_id, **values)
    ready_queue.add_queues(connection, [(tenant_id, row.requires)])
    ready_queue.refresh(connection, [tenant_id])
    return get(connection, action_id, tenant_id)


def _select() -> sa.Select[Any]:
    """Select actions with the names of their schedules and scripts."""
    schedule, script = tables.schedules.c, tables.scripts.c
    return (
        sa.select(tables.actions, schedule.name.label("schedule"), script.name.label("script"))
        .outerjoin_from(
            tables.actions,
            tables.schedules,
            (schedule.tenant_id == _a.tenant_id) & (schedule.id == _a.schedule_id),
        )
        .outerjoin(tables.scripts, (script.tenant_id == _a.tenant_id) & (script.id == _a.script_id))
    )


def get(connection: sa.Connection, action_id: str, tenant_id: str | None = None) -> Action:
    """Return one action; without a tenant it is searched for under every tenant.

    Raises:
        NotFound: action_unknown.
    """
    rows = []
    if is_id(action_id):
        rows = _read(connection, _select().where(_a.tenant_id.in_(_tenants(tenant_id)), _a.id == action_id))
    if not rows:
        raise NotFound("action_unknown", action=action_id)
    return rows[0]


def _tenants(tenant_id: str | None) -> Any:
    """Return the tenant, or a query of all tenants, for an ``IN`` condition."""
    return sa.select(tables.tenants.c.id) if tenant_id is None else [tenant_id]


@dataclass(frozen=True, slots=True)
class ActionFilter:
    """Filters of a query on actions; None matches any."""

    found: list_filter.Filter
    tenant_id: str | None = None
    schedule_id: str | None = None
    script: str | None = None


def language() -> list_filter.Language:
    """Return the filter language of lists of actions."""
    schedule, script = tables.schedules.c.name, tables.scripts.c.name
    # Name and message of an error as people read them, "TypeError: x is undefined"; the stack and the rest come after.
    error = list_filter.in_json(sa.func.replace(_a.error, '", "message": "', ": "), '{"name": "', '"stack": ')
    params = list_filter.in_json(_a.params)
    return list_filter.Language(
        fields={
            "tenant": list_filter.named(_a.tenant_id),
            "schedule": _looked_up(list_filter.named(schedule)),
            "script": _looked_up(list_filter.named(script)),
            "version": list_filter.named(sa.cast(_a.script_version, sa.String)),
            "state": list_filter.one_of(_a.state, STATES, "state_unknown"),
            "outcome": list_filter.one_of(_a.outcome, OUTCOMES, "outcome_unknown"),
            "origin": list_filter.one_of(_a.origin, ORIGINS, "origin_unknown"),
            "reason": list_filter.named(_a.reason),
            "label": list_filter.label(_a.requires),
            "error": error,
            "params": params,
            "since": list_filter.since(_a.due_at),
            "until": list_filter.until(_a.due_at),
            "ended_since": list_filter.since(_a.finished_us),
            "ended_until": list_filter.until(_a.finished_us),
        },
        words=list_filter.either(list_filter.contains(schedule, script), error, params),
        sorts={
            "created": _a.id,
            "due": _a.due_at,
            "ended": sa.func.coalesce(_a.finished_us, 0),
        },
        tie=(_a.id,),
        falls=True,
    )


def _looked_up(condition: list_filter.Condition) -> list_filter.Condition:
    """Return a condition on what an action refers to; PostgreSQL would look for the actions of each schedule that satisfies it."""
    return lambda value, now_us: sa.case((condition(value, now_us), sa.true()), else_=sa.false())


def _filtered(filters: ActionFilter) -> sa.Select[Any]:
    """Select the actions that filters match."""
    statement = _select()
    if filters.tenant_id is None and filters.schedule_id is None:
        statement = statement.where(_is_of_any_tenant)
    if filters.schedule_id is not None:
        statement = statement.where(_a.schedule_id == filters.schedule_id)
    if filters.tenant_id is not None:
        statement = statement.where(_a.tenant_id == filters.tenant_id)
    if filters.script is not None:
        statement = statement.where(tables.scripts.c.name == filters.script)
    return statement


def identities(filters: ActionFilter) -> sa.Select[Any]:
    """Return the statement of the tenants and ids of the actions that match."""
    return _filtered(filters).where(*filters.found.conditions).with_only_columns(_a.tenant_id, _a.id)


def list_matching(
    connection: sa.Connection,
    filters: ActionFilter,
    limit: int | None,
    cursor: str | None,
    *,
    before: str | None,
    after: str | None,
) -> Page[Action]:
    """Return a page of actions, newest first or in the filter's order.

    A page with a limit looks at MOST_LOOKED_AT actions: where few of them match it has fewer entries, and the next page goes on.
    An order other than by creation sorts so many at a time.

    Args:
        before, after: only actions created before, or after, the one with this id.
    """
    found = filters.found
    of = f"actions:{(filters.tenant_id, filters.schedule_id, filters.script)}:{found.text}"
    place = decode_cursor(connection, of, cursor)
    between: list[sa.ColumnElement[bool]] = []
    if before is not None:
        between.append(_a.id < before if is_id(before) else sa.false())
    if after is not None:
        between.append(_a.id > after if is_id(after) else sa.false())
    statement = _filtered(filters).where(*between)
    if not found.conditions and filters.script is None and found.keys[0] is _a.id:
        return pages.read(connection, of, found, statement, _actions, limit, cursor)
    part = _Part.of(connection, filters, found, between, place, whole=limit is None)
    within = None if place is None or part.is_order else place[1:]
    ordered = replace(found, conditions=(*part.conditions, *part.rest)).apply(statement, within or None)
    rows, places, more = pages.read_rows(connection, ordered, limit, found.keys)
    if not part.is_order:
        places = [[part.start, *each] for each in places]
    end = None if more or part.end is None else [part.end]
    return pages.page(connection, of, _actions(rows), places, more=more or end is not None, falls=found.falls, end=end)


def count_matching(connection: sa.Connection, filters: ActionFilter) -> tuple[int, bool]:
    """Count the actions that match among the newest MOST_LOOKED_AT; return whether that is all of them."""
    found = replace(filters.found, falls=True)
    part = _Part.of(connection, filters, found, (), None)
    if part.end is not None and not part.rest:  # every one of these matches
        return MOST_LOOKED_AT, False
    matching = _filtered(filters).where(*part.conditions, *part.rest).with_only_columns(_a.id).subquery()
    return connection.scalar(sa.select(sa.func.count()).select_from(matching)) or 0, part.end is None


@dataclass(frozen=True, slots=True)
class _Part:
    """The actions that one page looks at: neighbours in an index.

    Attributes:
        conditions: the conditions that the index answers.
        rest: the other conditions of the filter.
        start, end: values of the index's column: they begin after one and end with the other; None: at the end of the list.
        is_order: whether the list is in the order of the index.
    """

    conditions: Sequence[sa.ColumnElement[bool]]
    rest: Sequence[sa.ColumnElement[bool]]
    start: Any
    end: Any
    is_order: bool

    @classmethod
    def of(
        cls,
        connection: sa.Connection,
        filters: ActionFilter,
        found: list_filter.Filter,
        between: Sequence[sa.ColumnElement[bool]],
        place: Sequence[Any] | None,
        *,
        whole: bool = False,
    ) -> "_Part":
        """Find the part of a list that begins at a place; ``whole`` for all of the rest."""
        column, which, rest = _a.id, [*between], list(found.conditions)
        states = [each.lower() for each in found.positive.get("state", ((), None))[0]]
        if states and "done" not in states:
            which.append(is_undone)
        ids = [] if filters.schedule_id is None else [filters.schedule_id]
        if not ids and filters.tenant_id is not None and "schedule" in found.positive:
            schedule, named = tables.schedules.c, found.positive["schedule"][1]
            mine = sa.select(schedule.id).where(schedule.tenant_id == filters.tenant_id, named)
            ids = list(connection.scalars(mine.limit(2)))
            if len(ids) < 2:
                rest = [each for each in rest if each is not named]
                which += [] if ids else [sa.false()]
        if len(ids) == 1:
            which.append(_a.schedule_id == ids[0])
        else:
            which.append(_is_of_any_tenant if filters.tenant_id is None else _a.tenant_id == filters.tenant_id)
        ended = [found.positive[name][1] for name in ("ended_since", "ended_until") if name in found.positive]
        if ended:
            column = _a.finished_us
            which += [column.is_not(None), *ended]
        start = place[0] if place else _EXTREMES[bool(ended)][found.falls]
        which.append(column < start if found.falls else column > start)
        ordered = sa.select(column).where(*which).order_by(column.desc() if found.falls else column)
        end = None if whole else connection.scalar(ordered.offset(MOST_LOOKED_AT - 1).limit(1))
        if end is not None:
            which.append(column >= end if found.falls else column <= end)
        return cls(which, rest, start, end, found.keys[0] is column)


def failed_since(connection: sa.Connection, tenant_id: str | None, since_us: int, maximum: int) -> list[Action]:
    """Return the latest failed actions since an instant, newest first."""
    mine = () if tenant_id is None else (_a.tenant_id == tenant_id,)
    failed = _select().where(tables.is_one_of(_a.state, tables.FAILED), _a.finished_us >= since_us, *mine)
    newest = failed.order_by(_a.finished_us.desc()).limit(maximum)
    return _read(connection, indexed_by(newest, tables.actions, "ix_lodger_actions_failed"))


def created_after(connection: sa.Connection, tenant_id: str, after: str, maximum: int) -> list[Action]:
    """Return a tenant's actions with ids greater than ``after``, by id."""
    return _read(connection, _select().where(_a.tenant_id == tenant_id, _a.id > after).order_by(_a.id).limit(maximum))


def unfinished(connection: sa.Connection, tenant_id: str, maximum: int) -> list[Action]:
    """Return the unfinished actions of a tenant."""
    return _read(connection, _select().where(_a.tenant_id == tenant_id, _a.state.in_(tables.OPEN)).limit(maximum))


def changed_since(connection: sa.Connection, tenant_id: str, after: str, since_us: int, maximum: int) -> list[Action]:
    """Return a tenant's actions that are not finished, have finished since an instant or have an id after ``after``, by id."""
    changed = _a.state.in_(tables.OPEN) | (_a.finished_us >= since_us) | (_a.id > after)
    return _read(connection, _select().where(_a.tenant_id == tenant_id, changed).order_by(_a.id).limit(maximum))


def by_ids(connection: sa.Connection, tenant_id: str, ids: Iterable[str]) -> list[Action]:
    """Return the tenant's actions with these ids, as far as they exist."""
    return _read(connection, _select().where(_a.tenant_id == tenant_id, _a.id.in_(list(ids))))


def _read(connection: sa.Connection, statement: sa.Select[Any]) -> list[Action]:
    """Return the actions of a query."""
    return _actions(connection.execute(statement))


def _actions(rows: Iterable[AnyRow]) -> list[Action]:
    """Return the actions of rows."""
    return [record(Action, row, requires=tuple(row.requires.split())) for row in rows]


def row_of(connection: sa.Connection, tenant_id: str | None, action_id: str) -> AnyRow:
    """Return an action's row; of any tenant for None.

    Raises:
        NotFound: action_unknown.
    """
    which = sa.select(tables.actions).where(_a.tenant_id.in_(_tenants(tenant_id)), _a.id == action_id)
    row = connection.execute(which).first() if is_id(action_id) else None
    if row is None:
        raise NotFound("action_unknown", action=action_id)
    return row


def attempts(connection: sa.Connection, action_id: str, tenant_id: str | None = None) -> list[Attempt]:
    """Return the attempts of an action in order, a running one included."""
    action = row_of(connection, tenant_id, action_id)
    t = tables.attempts.c
    rows = connection.execute(
        sa.select(tables.attempts, nodes.c.name.label("node"))
        .outerjoin_from(tables.attempts, nodes, nodes.c.id == t.node_id)
        .where(t.tenant_id == action.tenant_id, t.action_id == action_id)
        .order_by(t.step, t.n)
    ).all()
    lines = _lines(connection, action.tenant_id, action_id)
    found = [_attempt(row, lines.get((row.step, row.n), ())) for row in rows]
    if action.state in {"running", "sealed"}:
        found.append(
            Attempt(
                action_id,
                action.step,
                action.attempt,
                action.node_id,
                from_us(action.started_us),
                None,
                None,
                None,
                Usage(),
                node=connection.scalar(sa.select(nodes.c.name).where(nodes.c.id == action.node_id)),
            )
        )
    return found


def limits(context: StoreContext, connection: sa.Connection, action: Action) -> list[dict[str, int]]:
    """Return the process limits of each step of an action, by name."""
    found = sa.select(tables.limits_in_effect, _a.revision).join_from(
        tables.actions, tables.tenants, tables.tenants.c.id == _a.tenant_id
    )
    row = connection.execute(found.where(_a.tenant_id == action.tenant_id, _a.id == action.id)).one()
    wishes: list[str | None] = [None]
    if action.schedule_id is not None:
        revision = context.revision_cache.revision(connection, action.tenant_id, action.schedule_id, row.revision)
        wishes = [revision.limits_of(step) for step in range(max(1, len(revision.steps)))]
    return [asdict(context.content_cache.limits(row.limits, wish)) for wish in wishes]


def logs(connection: sa.Connection, action_id: str, tenant_id: str | None = None) -> list[LogLine]:
    """Return the log lines of the action's attempts in order; of a running attempt those written so far."""
    stream = LogStream(get(connection, action_id, tenant_id).tenant_id, action_id)
    return [line for _place, line in stream.poll(connection)]


def _lines(connection: sa.Connection, tenant_id: str, action_id: str) -> dict[tuple[int, int], tuple[LogLine, ...]]:
    """Return the log lines of an action's attempts by step and number."""
    t = tables.attempt_logs.c
    rows = connection.execute(sa.select(t.step, t.n, t.lines).where(t.tenant_id == tenant_id, t.action_id == action_id))
    return {(step, n): tuple(decode_lines(text)) for step, n, text in rows}


def _attempt(row: AnyRow, lines: tuple[LogLine, ...]) -> Attempt:
    """Return the attempt of a row."""
    usage = Usage(row.cpu_us / 1000, row.wall_us / 1000, row.memory_peak_bytes, row.host_calls)
    return record(Attempt, row, usage=usage, logs=lines)
