"""Tenants: create, suspend, resume, delete. Each takes effect at once, on clocks, waiting and running actions."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from lodger.engine.core.access import names
from lodger.engine.core.access.labels import parse_labels, written
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.ids import PLATFORM, PLATFORM_PREFIX
from lodger.engine.policy import budget_table
from lodger.engine.policy.budget_table import ALLOWANCE_NAMES as ALLOWED
from lodger.engine.policy.budget_table import Allowance
from lodger.engine.recurrence.calendar.zones import zone
from lodger.engine.store import list_filter, pages
from lodger.engine.store.bulk import insert_many, update_row
from lodger.engine.store.content_cache import PROCESS_LIMITS, ContentCache, combined
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import prepared
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.queue.stops import hand_back
from lodger.engine.store.records import AnyRow, Page, Tenant
from lodger.engine.store.rows import record
from lodger.engine.store.schema import feeds
from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.schema.scheduling import actions, limits_in_effect, plans, tenants
from lodger.engine.store.schema.scheduling import turns as turn_rows
from lodger.sandbox.limits import Limits

#: Input form of labels: a text with commas, or several texts.
Labels = str | Iterable[str] | None

_SUSPENDED = "suspended"
#: State of a tenant that moves between ledgers, in both: nothing runs, and only the mover changes it.
MOVING = "moving"


def create(
    context: StoreContext,
    connection: Connection,
    tenant_id: str,
    name: str | None,
    limits: dict[str, Any] | None,
    now_us: int,
    *,
    grants: str | None = None,
    people: str | None = None,
    labels: Labels = None,
    plan: str | None = None,
    tz: str | None = None,
) -> Tenant:
    """Create a tenant; a deleted one with the same id is created again with the next generation.

    Args:
        grants, people: JSON text in the format of :mod:`lodger.engine.store.tenants.grants`.
        plan: name of its plan.

    Raises:
        Conflict: tenant_exists.
        InputError: tenant_id_invalid, name_invalid, limit_unknown and others.
        NotFound: plan_unknown.
    """
    names.check(tenant_id, "tenant_id_invalid")
    if tenant_id.startswith(PLATFORM_PREFIX):
        raise InputError("tenant_id_invalid.reserved", tenant=tenant_id, prefix=PLATFORM_PREFIX)
    allowed, bound = check_limits(limits or {}, context.content_cache), written(parse_labels(labels))
    own = json.dumps(limits or {}, sort_keys=True)
    cap = allowed.concurrent_runs if plan is None else _cap(context, own, plan_limits(connection, plan))
    before = _locked.first(connection, {"tenant": tenant_id})
    if before is not None and before.state != "deleted":
        raise Conflict("tenant_exists", tenant=tenant_id)
    values = {
        "id": tenant_id, "generation": before.generation + 1 if before else 1, "name": names.label(name or tenant_id), "state": "active",
        "limits": own, "grants": grants, "people": people, "labels": bound, "plan": plan, "tz": _zone(tz), "created_us": now_us,
    }  # fmt: skip
    if before is None:
        try:
            connection.execute(insert(tenants), values)
        except IntegrityError:  # created by a concurrent transaction
            raise Conflict("tenant_exists", tenant=tenant_id) from None
    else:
        update_row(connection, tenants, tenant_id, **values)
    turn = {"tenant_id": tenant_id, "bound": bound, "served_us": 0, "startable_at": None, "cap": cap}
    insert_many(connection, turn_rows, [turn])
    return get(connection, tenant_id)


def plan_limits(connection: Connection, name: str) -> str:
    """Return the limits of a plan (JSON text), which do not change until the transaction ends.

    Raises:
        NotFound: plan_unknown.
    """
    wanted = select(plans.c.limits).where(plans.c.name == name)
    found = connection.scalar(wanted.with_for_update(read=True))
    if found is None:
        raise NotFound("plan_unknown", name=name)
    return str(found)


def _cap(context: StoreContext, own: str, plan: str) -> int:
    """Return how many actions of a tenant may run at once, by its own limits and its plan's (JSON texts)."""
    return context.content_cache.allowance(f"[{plan},{own}]").concurrent_runs


def _zone(tz: str | None) -> str | None:
    """Return the IANA name of a zone, None for None; raises RuleInvalid (zone_unknown)."""
    return None if tz is None else zone(tz).key


def check_limits(limits: dict[str, Any], content_cache: ContentCache) -> Allowance:
    """Check limits of a tenant or a plan; return what they allow.

    Raises:
        InputError: limit_unknown, limit_out_of_range.
    """
    Limits(**{name: value for name, value in limits.items() if name in PROCESS_LIMITS})
    budget_table.given(limits)
    unknown = sorted(set(limits) - PROCESS_LIMITS - ALLOWED - budget_table.OF_ATTEMPT)
    if unknown:
        raise InputError(
            "limit_unknown", name=unknown[0], names=sorted(PROCESS_LIMITS | ALLOWED | budget_table.OF_ATTEMPT)
        )
    return content_cache.allowance(json.dumps(limits))


def _tenant(row: AnyRow) -> Tenant:
    """Return the tenant of a row."""
    return record(Tenant, row, labels=tuple(row.labels.split()), limits_in_effect=combined(row.in_effect))


_locked = Prepared(lambda _driver: select(tenants).where(tenants.c.id == bindparam("tenant")).with_for_update())
_with_plan = select(tenants, limits_in_effect.label("in_effect"))
_one = Prepared(lambda _driver: _with_plan.where(tenants.c.id == bindparam("tenant")))


def get(connection: Connection, tenant_id: str) -> Tenant:
    """Return a tenant.

    Raises:
        NotFound: tenant_unknown, also for a deleted one.
    """
    return ask(connection, tenant_id)()


def ask(connection: Connection, tenant_id: str) -> Callable[[], Tenant]:
    """Ask for a tenant; the returned function returns it, or raises as :func:`get`."""

    def make_tenant(rows: list[AnyRow]) -> Tenant:
        """Return the tenant; raises NotFound."""
        if not rows or rows[0].state == "deleted":
            raise NotFound("tenant_unknown", tenant=tenant_id)
        return _tenant(rows[0])

    return _one.answer(connection, {"tenant": tenant_id}, make_tenant)


def require_active(connection: Connection, tenant_id: str) -> Tenant:
    """Lock and return a tenant that may get new work.

    Raises:
        Conflict: tenant_suspended.
    """
    ready_queue.lock(connection, [tenant_id])
    tenant = get(connection, tenant_id)
    if tenant.state != "active":
        raise Conflict("tenant_suspended", tenant=tenant_id)
    return tenant


def language() -> list_filter.Language:
    """Return the filter language of the list of tenants."""
    return list_filter.Language(
        fields={
            "id": list_filter.named(tenants.c.id),
            "name": list_filter.named(tenants.c.name),
            "state": list_filter.one_of(tenants.c.state, ("active", "suspended", "moving"), "state_unknown"),
            "label": list_filter.label(tenants.c.labels),
            "plan": list_filter.named(tenants.c.plan),
            "since": list_filter.since(tenants.c.created_us),
            "until": list_filter.until(tenants.c.created_us),
        },
        words=list_filter.contains(tenants.c.id, tenants.c.name),
        sorts={
            "id": tenants.c.id,
            "name": tenants.c.name,
            "state": tenants.c.state,
            "created": tenants.c.created_us,
        },
        tie=(tenants.c.id,),
    )


def list_page(connection: Connection, found: list_filter.Filter, limit: int | None, cursor: str | None) -> Page[Tenant]:
    """Return a page of the tenants that match a filter and are not deleted, without the platform."""
    living = _with_plan.where(tenants.c.state != "deleted", tenants.c.id != PLATFORM)
    of = f"tenants:{found.text}"
    return pages.read(connection, of, found, living, lambda rows: [_tenant(row) for row in rows], limit, cursor)


def edit(context: StoreContext, connection: Connection, tenant_id: str, wanted: Mapping[str, Any]) -> Tenant:
    """Change ``name``, all of ``limits``, all of ``labels``, ``plan`` or ``tz``; waiting actions use them at once.

    Raises:
        InputError: limit_unknown, limit_out_of_range, label_invalid, zone_unknown.
        NotFound: plan_unknown.
    """
    ready_queue.lock(connection, [tenant_id])
    tenant = get(connection, tenant_id)
    values: dict[str, Any] = {}
    if "name" in wanted:
        values["name"] = names.label(wanted["name"] or tenant_id)
    if "limits" in wanted:
        limits = dict(wanted["limits"] or {})
        check_limits(limits, context.content_cache)
        values["limits"] = json.dumps(limits, sort_keys=True)
    if "tz" in wanted:
        values["tz"] = _zone(wanted["tz"])
    if "plan" in wanted:
        values["plan"] = wanted["plan"]
    if "limits" in wanted or "plan" in wanted:
        plan = wanted.get("plan", tenant.plan)
        own = values.get("limits", json.dumps(tenant.limits))
        cap = _cap(context, own, "{}" if plan is None else plan_limits(connection, plan))
        prepared.write(connection, update(turn_rows).where(turn_rows.c.tenant_id == tenant_id).values(cap=cap))
    if "labels" in wanted:
        values["labels"] = bound = written(parse_labels(wanted["labels"]))
        prepared.write(connection, update(turn_rows).where(turn_rows.c.tenant_id == tenant_id).values(bound=bound))
    if values:
        update_row(connection, tenants, tenant_id, **values)
    ready_queue.refresh(connection, [tenant_id])
    return get(connection, tenant_id)


def ids(connection: Connection) -> list[str]:
    """Return the ids of all tenants that live here."""
    gone = ("deleted", MOVING)
    found = select(tenants.c.id).where(tenants.c.state.not_in(gone), tenants.c.id != PLATFORM).order_by(tenants.c.id)
    return list(connection.scalars(found))


def hold(context: StoreContext, connection: Connection, tenant_id: str, now_us: int) -> None:
    """Suspend a tenant for its move: until :func:`release` it cannot be resumed, changed or deleted."""
    if get(connection, tenant_id).state != MOVING:
        suspend(context, connection, tenant_id, now_us)
        _set_state(connection, get(connection, tenant_id), MOVING)


def release(connection: Connection, tenant_id: str) -> bool:
    """End the hold of a tenant that moves, which is suspended then; return whether it was held."""
    ready_queue.lock(connection, [tenant_id])
    mine = (tenants.c.id == tenant_id, tenants.c.state == MOVING)
    return connection.execute(update(tenants).where(*mine).values(state=_SUSPENDED)).rowcount == 1


def suspend(context: StoreContext, connection: Connection, tenant_id: str, now_us: int) -> Tenant:
    """Stop a tenant at once: clocks are disarmed, running attempts end, waiting actions wait."""
    ready_queue.lock(connection, [tenant_id])
    tenant = get(connection, tenant_id)
    if tenant.state == _SUSPENDED:
        return tenant
    _set_state(connection, tenant, _SUSPENDED)
    for row in tick.lock_clocks(connection, tenant_id):
        if row.state == "armed":
            tick.disarm(context, connection, row, now_us, _SUSPENDED)
    mine = actions.c.tenant_id == tenant_id
    hand_back(connection, mine, now_us)
    ready_queue.refresh(connection, [tenant_id])
    return get(connection, tenant_id)


def resume(context: StoreContext, connection: Connection, tenant_id: str, now_us: int) -> Tenant:
    """Resume a tenant: slots of the suspension become gaps, clocks are armed, waiting actions may start."""
    ready_queue.lock(connection, [tenant_id])
    tenant = get(connection, tenant_id)
    if tenant.state not in {_SUSPENDED, MOVING}:
        return tenant
    _set_state(connection, tenant, "active")
    context.forget(tenant_id)
    for row in tick.lock_clocks(connection, tenant_id):
        if row.state == _SUSPENDED:
            tick.arm(context, connection, row, now_us, gap_reason="tenant_suspended")
    ready_queue.refresh(connection, [tenant_id])
    return get(connection, tenant_id)


def erase(connection: Connection, tenant_id: str) -> None:
    """Delete a tenant with every row that has its id; its own row stays, marked as deleted, to keep the generation.

    This covers every table of Lodger with a ``tenant_id``, and the changes of the tenant's collections: a later tenant with this id
    would read them.
    """
    ready_queue.lock(connection, [tenant_id])
    tenant = get(connection, tenant_id)
    if tenant_id == PLATFORM:
        raise Conflict("platform_stays")
    _set_state(connection, tenant, "deleted")
    update_row(
        connection, tenants, tenant_id, name="", limits="{}", grants=None, people=None, plan=None, labels="", tz=None
    )
    for table in reversed(metadata.sorted_tables):
        if "tenant_id" in table.c:
            prepared.write(connection, delete(table).where(table.c.tenant_id == tenant_id))
    for table in (feeds.changes, feeds.forgotten):
        connection.execute(delete(table).where(feeds.of_collections(table, tenant_id)))


def _set_state(connection: Connection, tenant: Tenant, state: str) -> None:
    """Store the state of a tenant, with the next generation; raises Conflict (tenant_moving) during a move."""
    if tenant.state == MOVING:
        raise Conflict("tenant_moving", tenant=tenant.id)
    update_row(connection, tenants, tenant.id, state=state, generation=tenant.generation + 1)
