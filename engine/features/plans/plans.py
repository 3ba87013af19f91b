"""Plans: named sets of limits. A changed plan holds for its tenants at once, because limits are combined where they are read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import Connection, delete, func, insert, select, update

from lodger.engine.core.access import names
from lodger.engine.core.errors import Conflict, NotFound
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import prepared
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.rows import record
from lodger.engine.store.schema.scheduling import plans, tenants, turns
from lodger.engine.store.tenants.tenants import check_limits

_c = plans.c
#: Of the limits that a tenant has of its own, as JSON text with the names in order.
_CAP = '%"concurrent_runs"%'


@dataclass(frozen=True, slots=True)
class Plan:
    """A named set of limits."""

    ETAG: ClassVar = ("name", "limits", "updated_at")

    name: str
    limits: dict[str, Any]
    created_at: datetime
    updated_at: datetime


def put(context: StoreContext, connection: Connection, name: str, limits: Mapping[str, Any], now_us: int) -> Plan:
    """Create a plan, or replace its limits.

    Raises:
        InputError: plan_name_invalid, limit_unknown, limit_out_of_range.
    """
    names.check(name, "plan_name_invalid")
    cap = check_limits(dict(limits), context.content_cache).concurrent_runs
    values = {"limits": json.dumps(dict(limits), sort_keys=True), "updated_us": now_us}
    before = find(connection, name)
    if before is None:
        prepared.write(connection, insert(plans).values(name=name, created_us=now_us, **values))
        return get(connection, name)
    prepared.write(connection, update(plans).where(_c.name == name).values(values))
    if before.limits.get("concurrent_runs") != dict(limits).get("concurrent_runs"):
        _set_caps(connection, name, cap)
    return get(connection, name)


def _set_caps(connection: Connection, name: str, cap: int) -> None:
    """Set the number of concurrent runs, which claims read from the ready queue, of the plan's tenants without their own."""
    theirs = select(tenants.c.id).where(tenants.c.plan == name, tenants.c.limits.not_like(_CAP))
    affected = list(connection.scalars(theirs))
    ready_queue.lock(connection, affected)
    prepared.write(connection, update(turns).where(turns.c.tenant_id.in_(theirs)).values(cap=cap))
    ready_queue.refresh(connection, affected)


def find(connection: Connection, name: str, *, lock: bool = True) -> Plan | None:
    """Return a plan, None if there is none; it stays as it is until the transaction ends, unless that only reads."""
    wanted = select(plans).where(_c.name == name)
    row = connection.execute(wanted.with_for_update() if lock else wanted).first()
    return None if row is None else record(Plan, row)


def get(connection: Connection, name: str, *, lock: bool = False) -> Plan:
    """Return a plan.

    Raises:
        NotFound: plan_unknown.
    """
    found = find(connection, name, lock=lock)
    if found is None:
        raise NotFound("plan_unknown", name=name)
    return found


def list_all(connection: Connection) -> list[Plan]:
    """Return the plans by name."""
    return [record(Plan, row) for row in connection.execute(select(plans).order_by(_c.name))]


def erase(connection: Connection, name: str) -> Plan:
    """Delete a plan that no tenant refers to; return it.

    Raises:
        NotFound: plan_unknown.
        Conflict: plan_in_use.
    """
    found = get(connection, name, lock=True)
    count = connection.scalar(select(func.count()).select_from(tenants).where(tenants.c.plan == name))
    if count:
        raise Conflict("plan_in_use", name=name, count=count)
    prepared.write(connection, delete(plans).where(_c.name == name))
    return found
