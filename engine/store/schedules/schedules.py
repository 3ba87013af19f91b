"""Schedules: create, edit, pause, resume, delete. Every change accounts the slots that the old state owes in the same transaction."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, select

from lodger.engine.core.access import names
from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.errors import Conflict, InputError, Unavailable
from lodger.engine.policy.budget_table import Allowance
from lodger.engine.recurrence import on_changes as changes
from lodger.engine.recurrence.calendar.zones import tzdata_version
from lodger.engine.store.bulk import insert_many, update_row
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.content_cache import combined
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import prepared
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.queue import followers, ready_queue, schedule_concurrency
from lodger.engine.store.queue.stops import stop_waiting
from lodger.engine.store.records import AnyRow, Schedule
from lodger.engine.store.revision_cache import PreparedRules
from lodger.engine.store.schedules import revisions
from lodger.engine.store.schedules.revisions import ScheduleFields
from lodger.engine.store.schedules.schedule_rows import deleted, get, list_page
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.scripts.bindings import bind
from lodger.engine.store.tenants import tenants

__all__ = ["ScheduleFields", "create", "edit", "erase", "get", "list_page", "pause", "resume"]

_s, _k = tables.schedules.c, tables.schedule_clock.c


def create(
    context: StoreContext,
    connection: Connection,
    tenant_id: str,
    name: str,
    wish: ScheduleFields,
    now_us: int,
    audit_context: AuditContext,
    first_after_us: int | None = None,
    in_zone: Callable[[str], PreparedRules] | None = None,
) -> Schedule:
    """Create a schedule: bind a script to rules.

    Args:
        first_after_us: earliest instant of the first slot, by default after now. For one in the past the missed policy
            acts at the first tick.
        in_zone: returns the rules in a zone, the tenant's own; None if they name one.

    Raises:
        RuleNeverFires: no slot is left from that instant on.
        InputError, NotFound, Conflict: rule_too_frequent, schedules_full, schedule_exists and errors of the parts.
    """
    tenant, number, steps = read_together(
        partial(tenants.require_active, connection, tenant_id),
        partial(_named, connection, tenant_id, name),
        partial(revisions.steps_of, wish.script, wish.params, partial(bind, connection, tenant_id)),
        connection=connection,
    )
    if tenant.tz is not None and in_zone is not None:
        wish = replace(wish, rules=in_zone(tenant.tz))
    limits, owed_us = json.dumps(tenant.limits_in_effect), now_us + 1 if first_after_us is None else first_after_us
    allowed = context.content_cache.allowance(limits)
    check_spacing(wish.rules.gap_below_s, allowed)
    revisions.require_within(context, combined(limits), [wish.limits, *(step["limits"] for step in steps)])
    if number >= allowed.schedules:
        raise Conflict("schedules_full", tenant=tenant_id, maximum=allowed.schedules)
    schedule_id = context.ids.new()
    insert_many(connection, tables.schedules, [{
        "tenant_id": tenant_id, "id": schedule_id, "name": name, "script_id": steps[0]["script_id"], "revision": 1, "created_us": now_us,
    }])  # fmt: skip
    next_us, searching = revisions.store_revision(
        context, connection, tenant, schedule_id, 1, wish, steps, now_us, owed_us, audit_context
    )
    insert_many(connection, tables.schedule_clock, [{
        "tenant_id": tenant_id, "schedule_id": schedule_id, "state": "armed", "next_at": next_us, "accounted_us": owed_us - 1,
        "revision": 1, "tzdata": tzdata_version(), "searching": int(searching),
    }])  # fmt: skip
    if sets := changes.named(wish.rules.rules):
        followers.bind(connection, tenant_id, schedule_id, sets, now_us)
    return get(connection, tenant_id, schedule_id)


def _named(connection: Connection, tenant_id: str, name: str) -> int:
    """Return the number of a tenant's schedules, under its lock; refuse a name that cannot be one, or is one of them.

    Raises:
        InputError: schedule_name_invalid.
        Conflict: schedule_exists.
    """
    names.check(name, "schedule_name_invalid")
    ((number, taken),) = _number.rows(connection, {"tenant": tenant_id, "called": name})
    if taken:
        raise Conflict("schedule_exists", tenant=tenant_id, name=name)
    return int(number)


#: The number of a tenant's schedules, and of those with a name.
_number = Prepared(
    lambda _driver: (
        select(func.count().label("number"))
        .add_columns(func.count().filter(_s.name == bindparam("called")).label("taken"))
        .where(_s.tenant_id == bindparam("tenant"), _s.deleted_us.is_(None))
    )
)


def check_spacing(gap_below_s: Callable[[float], float | None], allowed: Allowance) -> None:
    """Refuse rules whose slots are closer than the tenant's limit.

    Raises:
        InputError: rule_too_frequent.
    """
    gap_s = gap_below_s(allowed.min_interval_s)
    if gap_s is not None:
        raise InputError(
            "rule_too_frequent", gap_s=gap_s, min_interval_s=allowed.min_interval_s, details={"smallest_gap_s": gap_s}
        )


def edit(
    context: StoreContext,
    connection: Connection,
    tenant_id: str,
    before: Schedule,
    change: Mapping[str, Any],
    now_us: int,
    audit_context: AuditContext,
) -> Schedule:
    """Store a new revision with these changes (fields of :class:`ScheduleFields`) and move the clock, in one transaction.

    ``before`` was read under the tenant's lock.
    ``rules`` must be prepared even if unchanged; only new ones are checked against the limits. The old revision is
    accounted up to now first; its queued actions keep their script version and run. ``version`` pins the version of a
    schedule with one script, and ``name`` renames it.
    """
    change = dict(change)
    name = change.pop("name", before.name)
    if "version" in change:
        change["script"] = revisions.with_version(change.get("script", before.steps), change.pop("version"))
    wish = ScheduleFields(**{
        "script": before.steps, "missed": before.missed, "overlap": before.overlap,
        "retry": before.retry, "limits": before.limits, "params": before.params, **change,
        "conduct": before.conduct | dict(change.get("conduct") or {}), "grants": change.get("grants", before.grants),
    })  # fmt: skip
    tenant, clock, steps, _present, unfinished = read_together(
        partial(tenants.require_active, connection, tenant_id),
        partial(_clock, connection, before),
        partial(revisions.steps_of, wish.script, wish.params, partial(bind, connection, tenant_id)),
        partial(context.revision_cache.revision, connection, tenant_id, before.id, before.revision),
        partial(schedule_concurrency.unfinished, connection, [before.id]),
        connection=connection,
    )
    if change["rules"].rules != before.rules:
        check_spacing(change["rules"].gap_below_s, context.content_cache.allowance(json.dumps(tenant.limits_in_effect)))
    # Stored limits may exceed the tenant's by now; only new ones are checked.
    old = [before.limits, *(step.get("limits") for step in before.steps)]
    wished = [wish.limits, *(step["limits"] for step in steps)]
    revisions.require_within(context, tenant.limits_in_effect, [each for each in wished if each not in old])
    if name != before.name:
        _named(connection, tenant_id, name)
        update_row(connection, tables.schedules, tenant_id, before.id, name=name)
    if clock.state == "armed":
        tick.account(context, connection, [clock], now_us, unfinished=lambda: dict(unfinished))
    else:
        tick.account_gap(context, connection, clock, now_us, clock.state)
    number, owed_us = before.revision + 1, max(now_us, clock.accounted_us) + 1
    # Revisions that external SQL inserted give way.
    r = tables.schedule_revisions.c
    later = (r.tenant_id == tenant_id, r.schedule_id == before.id, r.revision >= number)
    prepared.write(connection, delete(tables.schedule_revisions).where(*later))
    next_us, searching = revisions.store_revision(
        context, connection, tenant, before.id, number, wish, steps, now_us, owed_us, audit_context
    )
    update_row(connection, tables.schedules, tenant_id, before.id, revision=number, script_id=steps[0]["script_id"])
    followers.bind(connection, tenant_id, before.id, changes.named(wish.rules.rules), now_us)
    coming = {"state": "armed", "next_at": next_us, "searching": int(searching)}
    armed = coming if clock.state in {"armed", "ended"} else {}
    moved = {"revision": number, "accounted_us": owed_us - 1} | armed
    update_row(connection, tables.schedule_clock, tenant_id, before.id, **moved)
    return get(connection, tenant_id, before.id)


def pause(
    context: StoreContext,
    connection: Connection,
    tenant_id: str,
    schedule: str,
    now_us: int,
    note: str | None,
    until_us: int | None,
) -> Schedule:
    """Disarm the clock at once; slots until :func:`resume` (or ``until_us``) become one gap with reason paused."""
    ready_queue.lock(connection, [tenant_id])
    found = get(connection, tenant_id, schedule)
    if found.state not in {"armed", "paused"}:
        raise Conflict("schedule_not_armed", name=found.name, state=found.state)
    if until_us is not None and until_us <= now_us:
        raise InputError("until_past")
    tick.disarm(context, connection, _clock(connection, found), now_us, "paused", until_us)
    update_row(connection, tables.schedules, tenant_id, found.id, note=note)
    return get(connection, tenant_id, found.id)


def resume(context: StoreContext, connection: Connection, tenant_id: str, schedule: str, now_us: int) -> Schedule:
    """Arm a paused schedule; an armed one is left unchanged."""
    tenants.require_active(connection, tenant_id)
    found = get(connection, tenant_id, schedule)
    if found.state == "paused":
        fault = context.revision_cache.revision(connection, tenant_id, found.id, found.revision).fault
        if fault is not None:
            raise Unavailable("rule_unreadable", name=found.name, reason=fault)
        tick.arm(context, connection, _clock(connection, found), now_us, gap_reason="paused")
        update_row(connection, tables.schedules, tenant_id, found.id, note=None, failures=0)
    return get(connection, tenant_id, found.id)


def erase(context: StoreContext, connection: Connection, found: Schedule, now_us: int) -> Schedule:
    """Delete a schedule: due slots are accounted, waiting actions cancelled, running ones may end. The history stays.

    ``found`` was read under the tenant's lock.
    """
    tenant_id = found.tenant_id
    clock = _clock(connection, found)
    if clock.state != "armed":
        tick.account_gap(context, connection, clock, now_us, clock.state)
    tick.disarm(context, connection, clock, now_us, "deleted")
    followers.unbind(connection, tenant_id, found.id)
    stop_waiting(connection, tenant_id, found.id, now_us)
    update_row(connection, tables.schedules, tenant_id, found.id, deleted_us=now_us)
    ready_queue.refresh(connection, [tenant_id])
    return deleted(connection, tenant_id, found.id)


def _clock(connection: Connection, schedule: Schedule) -> AnyRow:
    """Lock and return the clock of a schedule."""
    return tick.lock_clocks(connection, schedule.tenant_id, [schedule.id])[0]
