"""Revisions of schedules: checked and stored once, then immutable."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Select, select

from lodger.engine.core.access import names
from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.access.labels import written
from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.ids import is_id
from lodger.engine.core.params import validate_params
from lodger.engine.policy.conduct import Conduct, parse_conduct
from lodger.engine.policy.plan import parse_missed, parse_overlap
from lodger.engine.policy.retry import parse_retry
from lodger.engine.recurrence.search import SearchedTo
from lodger.engine.store import pages
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.context import StoreContext, dump_json, dump_params
from lodger.engine.store.list_filter import Filter
from lodger.engine.store.queue.placements import require_placement
from lodger.engine.store.records import AnyRow, Json, Page, ScheduleRevision, Tenant
from lodger.engine.store.revision_cache import PreparedRules, decode_rules, encode_rules
from lodger.engine.store.rows import record
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.scripts import scripts
from lodger.engine.store.scripts.bindings import BoundScript
from lodger.engine.store.tenants.grants import encode

#: Maximum number of steps of an action.
MAX_STEPS = 20
#: {"script_id": …, "limits": {…} or None, "version": n or absent, "on": the label of its handler or absent}
Step = dict[str, Any]
#: Version of a step that always runs the newest one.
LATEST = "latest"

_r = tables.schedule_revisions.c


@dataclass(frozen=True, slots=True)
class ScheduleFields:
    """All fields of a schedule that a caller sets; checked and stored as one revision.

    ``script`` is a name, or the steps in order: names, or objects with ``script``, ``version`` and ``limits``.
    """

    script: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
    rules: PreparedRules
    missed: str
    overlap: str
    retry: Any = None
    limits: Mapping[str, Any] | None = None
    params: Json = None
    conduct: Conduct | Mapping[str, Any] | None = None
    grants: Iterable[str] | None = None


def steps_of(wish: Any, params: Json, bound: Callable[[str, int | None], BoundScript]) -> list[Step]:
    """Read the steps of a schedule; check that scripts exist, and the params fit the first script.

    Args:
        bound: returns the script with a name and a version, and records the binding of one of the platform.
    """
    given = _as_list(wish)
    if not 1 <= len(given) <= MAX_STEPS:
        raise InputError("steps_invalid.count", count=len(given), maximum=MAX_STEPS)
    steps: list[Step] = []
    for each in given:
        step = _as_object(each)
        unknown = sorted(set(step) - {"script", "limits", "version"})
        well_typed = isinstance(step.get("script"), str) and isinstance(step.get("limits") or {}, Mapping)
        if unknown or not well_typed:
            raise InputError("steps_invalid", step=each)
        version = pinned_version(step.get("version"))
        script = bound(step["script"], version)
        if not steps:
            validate_params(script.fields, params)
        pin = ({} if version is None else {"version": version}) | ({"on": script.requires} if script.requires else {})
        steps.append({"script_id": script.script_id, "limits": step.get("limits") or None} | pin)
    return steps


def require_within(
    context: StoreContext, tenant_limits: Mapping[str, Any], wished: Iterable[Mapping[str, Any] | None]
) -> None:
    """Check that limits are valid, and do not exceed those of the tenant.

    Raises:
        InputError: limit_above_tenant: the limit would be stored and shown without effect; limit_out_of_range and others.
    """
    allowed = json.dumps(dict(tenant_limits), sort_keys=True)
    maximum = asdict(context.content_cache.limits(allowed, None)) | context.content_cache.budgets(allowed, None)
    for limits in wished:
        if limits:
            context.content_cache.limits("{}", json.dumps(dict(limits), sort_keys=True))
        for name, value in sorted((limits or {}).items()):
            if name in maximum and value > maximum[name]:
                raise InputError(
                    "limit_above_tenant", name=name, value=value, maximum=maximum[name], details={"limit": name}
                )


def with_version(script: Any, version: object) -> list[dict[str, Any]]:
    """Return the only step of a schedule with a pinned version.

    Raises:
        InputError: version_of_steps.
    """
    given = _as_list(script)
    if len(given) != 1:
        raise InputError("version_of_steps", count=len(given))
    return [_as_object(given[0]) | {"version": version}]


def _as_list(wish: Any) -> list[Any]:
    """Return the steps of a schedule that a caller gives, also for a single one."""
    return [wish] if isinstance(wish, str | Mapping) else list(wish)


def _as_object(step: Any) -> dict[str, Any]:
    """Return a step that a caller gives as an object, also for a name alone."""
    return dict(step) if isinstance(step, Mapping) else {"script": step}


def pinned_version(given: object) -> int | None:
    """Return the version that a step is pinned to; None for the newest when an action is created.

    Raises:
        InputError: version_invalid.
    """
    if given is None or given == LATEST:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given < 2**31:
        raise InputError("version_invalid", given=given, latest=LATEST)
    return given


def store_revision(
    context: StoreContext, connection: Connection, tenant: Tenant, schedule_id: str, number: int, wish: ScheduleFields, steps: list[Step],
    now_us: int, owed_us: int, audit_context: AuditContext,
) -> tuple[int, bool]:  # fmt: skip
    """Check and insert a revision of a schedule.

    Returns:
        Its first slot at or after ``owed_us`` and False, or the instant that the search reached and True.
    """
    params, limits = dump_params(wish.params), steps[0]["limits"] or wish.limits
    if params is not None:
        wished = json.dumps(dict(limits), sort_keys=True) if limits else None
        scripts.require_fitting(params, context.content_cache.limits(json.dumps(tenant.limits_in_effect), wished))
    first = wish.rules.first_from(from_us(owed_us))
    conduct = parse_conduct(wish.conduct)
    require_placement(conduct, tenant.id)
    row = {
        "tenant_id": tenant.id,
        "schedule_id": schedule_id,
        "revision": number,
        "rules": encode_rules(wish.rules.rules),
        "sentence": wish.rules.recurrence.text(),
        "script_id": steps[0]["script_id"],
        "steps": json.dumps(steps) if len(steps) > 1 or steps[0]["limits"] or "version" in steps[0] else None,
        "missed": str(parse_missed(wish.missed)),
        "overlap": parse_overlap(wish.overlap).value,
        "retry": dump_json(parse_retry(wish.retry).as_dict()) if wish.retry is not None else None,
        "limits": json.dumps(dict(wish.limits), sort_keys=True) if wish.limits else None,
        "conduct": dump_json(conduct.as_dict()) if wish.conduct else None,
        "requires": written([*conduct.labels, *(step["on"] for step in steps if "on" in step)]),
        "params": params,
        "grants": encode(wish.grants),
        "anchor_us": to_us(wish.rules.anchor),
        "created_us": now_us,
        "created_by": audit_context.actor,
        "why": audit_context.why,
    }
    insert_many(connection, tables.schedule_revisions, [row])
    return to_us(first.instant if isinstance(first, SearchedTo) else first), isinstance(first, SearchedTo)


def _select(tenant_id: str, schedule_id: str) -> Select[Any]:
    """Select the revisions of a schedule with the names of their scripts."""
    script = tables.scripts.c
    return (
        select(tables.schedule_revisions, script.name.label("script"))
        .join_from(
            tables.schedule_revisions, tables.scripts, (script.tenant_id == _r.tenant_id) & (script.id == _r.script_id)
        )
        .where(_r.tenant_id == tenant_id, _r.schedule_id == schedule_id)
    )


def get(connection: Connection, tenant_id: str, schedule_id: str, number: int) -> ScheduleRevision:
    """Return a revision of a schedule by its number.

    Raises:
        NotFound: revision_unknown.
    """
    row = connection.execute(_select(tenant_id, schedule_id).where(_r.revision == names.ordinal(number))).first()
    if row is None:
        raise NotFound("revision_unknown", number=number)
    return _revision(row, step_names(connection, [row]))


def list_page(
    connection: Connection, tenant_id: str, schedule_id: str, limit: int | None, cursor: str | None
) -> Page[ScheduleRevision]:
    """Return a page of the revisions of a schedule, newest first."""

    def make_revisions(rows: list[AnyRow]) -> list[ScheduleRevision]:
        """Return the revisions of rows, with the names of their scripts."""
        named = step_names(connection, rows)
        return [_revision(row, named) for row in rows]

    of, newest = f"revisions:{tenant_id}:{schedule_id}", Filter((_r.revision,))
    return pages.read(connection, of, newest, _select(tenant_id, schedule_id), make_revisions, limit, cursor)


def step_names(connection: Connection, rows: Sequence[AnyRow]) -> dict[str, str]:
    """Return the script names, by id, of the steps of these rows."""
    # SQL inserts steps too, with invalid ids that PostgreSQL would refuse to compare.
    ids = {step["script_id"] for row in rows if row.steps for step in json.loads(row.steps) if is_id(step["script_id"])}
    known = {row.script_id: row.script for row in rows}
    if not (ids := ids - known.keys()):
        return known
    script = tables.scripts.c
    tenant_ids = {row.tenant_id for row in rows if row.steps}
    found = connection.execute(
        select(script.id, script.name).where(script.tenant_id.in_(tenant_ids), script.id.in_(ids))
    )
    return known | {row.id: row.name for row in found}


def show_steps(row: AnyRow, named: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
    """Return the steps of a revision's row as callers give them."""
    if not row.steps:
        return ({"script": row.script},)
    return tuple(
        {"script": named[step["script_id"]]}
        | ({"version": step["version"]} if "version" in step else {})
        | ({"limits": step["limits"]} if step["limits"] else {})
        for step in json.loads(row.steps)
    )


def show_policies(row: AnyRow) -> dict[str, Any]:
    """Return the policies of a revision that its row has in another form."""
    return {
        "retry": json.loads(row.retry) if row.retry else parse_retry(None).as_dict(),
        "limits": json.loads(row.limits) if row.limits else {},
        "conduct": parse_conduct(json.loads(row.conduct) if row.conduct else None).as_dict(),
    }


def _revision(row: AnyRow, named: Mapping[str, str]) -> ScheduleRevision:
    """Return the revision of a row."""
    return record(
        ScheduleRevision,
        row,
        text=row.sentence,
        rules=decode_rules(row.rules),
        steps=show_steps(row, named),
        **show_policies(row),
    )
