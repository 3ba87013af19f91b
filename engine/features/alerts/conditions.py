"""Conditions that alerts report, found in the ledger: queued endings, waiting and running actions, silent schedules, budgets."""

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, or_, select

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.strict_json import instant_text
from lodger.engine.features.alerts.kinds import AlertKind, kind_of
from lodger.engine.features.alerts.rules import AlertRule
from lodger.engine.features.alerts.tables import alert_queue
from lodger.engine.policy.budget_table import WARNED_PERCENT
from lodger.engine.store.context import StoreContext
from lodger.engine.store.schema.scheduling import actions, is_running, is_startable, schedule_clock
from lodger.engine.store.usage import usage

#: Rows that one query reads.
MAX_ROWS = 1000
_a, _q, _k = actions.c, alert_queue.c, schedule_clock.c
#: How long before an alert the slot of the run that closes it may lie, microseconds: bounds the search.
_SLOT_BEFORE_US = timedelta(days=1) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that an alert reports.

    Attributes:
        at_us: its instant.
        edge: it happened at that instant; otherwise it lasts, and is found again in each evaluation.
        subject: the budget's name.
    """

    tenant_id: str
    kind: AlertKind
    at_us: int
    schedule_id: str | None = None
    action_id: str | None = None
    subject: str = ""
    edge: bool = False
    details: dict[str, Any] = field(default_factory=dict)


#: Tenant, action and kind of a row of the queue.
QueueKey = tuple[str, str, str]


def queued(connection: Connection, tenant_ids: Collection[str]) -> tuple[list[QueueKey], list[Condition]]:
    """Return the keys of these tenants' first rows in the queue, and the conditions that they stand for, in order of time."""
    rows = connection.execute(
        select(alert_queue, _a.schedule_id, _a.state, _a.reason, _a.outcome, _a.error, _a.slot, _a.slot_to, _a.due_at, _a.finished_us)
        .outerjoin(actions, (_a.tenant_id == _q.tenant_id) & (_a.id == _q.action_id))
        .where(_q.tenant_id.in_(tenant_ids))
        .order_by(_q.action_id)
        .limit(MAX_ROWS)
    ).all()  # fmt: skip
    found = []
    for row in rows:
        if row.kind == "slow":
            kind, details = AlertKind.SLOW, json.loads(row.details)
        elif row.state is None or (ended := kind_of(row.state, row.reason)) is None:
            continue  # deleted meanwhile, or no alert
        else:
            kind, details = ended, _ended(row)
        at_us = row.finished_us or row.slot_to or row.slot or row.due_at
        found.append(Condition(row.tenant_id, kind, at_us, row.schedule_id, row.action_id, edge=True, details=details))
    return [(row.tenant_id, row.action_id, row.kind) for row in rows], sorted(found, key=lambda each: each.at_us)


def _ended(row: Any) -> dict[str, Any]:
    """Return the values of an ended action for a message."""
    details = {"state": row.state, "outcome": row.outcome, "reason": row.reason}
    details |= {name: _text(us) for name, us in (("slot", row.slot), ("slot_to", row.slot_to))}
    if row.error is not None:
        error = json.loads(row.error)
        place = f" ({error['file']}:{error['line']})" if error.get("file") else ""
        details["error"] = f"{error['name']}: {error['message']}{place}"[:1000]
    return {name: value for name, value in details.items() if value is not None}


def lasting(context: StoreContext, connection: Connection, rule: AlertRule, now_us: int) -> list[Condition]:
    """Return the conditions of a rule's kinds that last at this instant."""
    finders = {
        AlertKind.LATE: _late,
        AlertKind.OVERRAN: _overran,
        AlertKind.SILENT: _silent,
    }
    found = [each for kind, find in finders.items() if kind in rule.kinds for each in find(connection, rule, now_us)]
    return found + (_budgets(context, connection, rule, now_us) if AlertKind.BUDGET in rule.kinds else [])


def _late(connection: Connection, rule: AlertRule, now_us: int) -> list[Condition]:
    """Return actions that are due and have not started; one that is to start anew because its machine was lost counts as started."""
    waiting = (
        is_startable,
        or_(_a.attempt == 0, _a.state != "ready", _a.step > 0),
        _a.due_at <= now_us - rule.late_s * 1_000_000,
    )
    rows = connection.execute(
        select(_a.id, _a.schedule_id, _a.due_at).where(*_of(rule, _a), *waiting).order_by(_a.due_at).limit(MAX_ROWS)
    )
    return [
        Condition(rule.tenant_id, AlertKind.LATE, now_us, row.schedule_id, row.id, details={"due": _text(row.due_at)})
        for row in rows
    ]


def _overran(connection: Connection, rule: AlertRule, now_us: int) -> list[Condition]:
    """Return running actions that take longer than the rule's threshold, or are older than a later slot of their schedule."""
    later = actions.alias("later")
    if rule.overran_s is None:
        newer = (later.c.schedule_id == _a.schedule_id) & (later.c.slot > _a.slot) & (later.c.slot <= now_us)
        too_long: ColumnElement[bool] = select(later.c.id).where(newer).exists()
    else:
        too_long = _a.started_us <= now_us - rule.overran_s * 1_000_000
    rows = connection.execute(
        select(_a.id, _a.schedule_id, _a.started_us).where(*_of(rule, _a), is_running, too_long).limit(MAX_ROWS)
    )
    return [
        Condition(rule.tenant_id, AlertKind.OVERRAN, now_us, row.schedule_id, row.id, details={"started": _text(row.started_us)})
        for row in rows
    ]  # fmt: skip


def _silent(connection: Connection, rule: AlertRule, now_us: int) -> list[Condition]:
    """Return armed schedules with a slot older than the threshold and no success since."""
    before = now_us - rule.silent_s * 1_000_000
    created_us = to_us(rule.created_at)
    done, slots = actions.alias("done"), actions.alias("slots")
    success = func.coalesce(
        select(func.max(done.c.slot))
        .where(done.c.schedule_id == _k.schedule_id, done.c.state == "done")
        .correlate(schedule_clock)  # inside the next one, too
        .scalar_subquery(),
        0,
    )
    expected = (
        select(func.min(slots.c.slot))
        .where(slots.c.schedule_id == _k.schedule_id, slots.c.slot > success, slots.c.slot >= created_us)
        .scalar_subquery()
    )
    rows = connection.execute(
        select(_k.schedule_id, _k.next_at, success.label("success"), expected.label("expected")).where(
            *_of(rule, _k),
            _k.state == "armed",
            or_(expected <= before, (_k.next_at <= before) & (_k.next_at >= created_us)),
        )
    )
    return [
        Condition(
            rule.tenant_id, AlertKind.SILENT, now_us, row.schedule_id,
            details={"expected": _text(row.expected or row.next_at)} | ({"last_success": _text(row.success)} if row.success else {}),
        )
        for row in rows
    ]  # fmt: skip


def _budgets(context: StoreContext, connection: Connection, rule: AlertRule, now_us: int) -> list[Condition]:
    """Return the budgets of the present day that are used to :data:`WARNED_PERCENT` percent."""
    known = usage.usages_of_day(context, connection, [rule.tenant_id], now_us // usage.DAY_US)
    return [
        Condition(
            rule.tenant_id, AlertKind.BUDGET, now_us, subject=each.budget,
            details={"budget": each.budget, "limit": each.limit, "used": each.used},
        )
        for day in known.values()
        for each in day.rows()
        if each.limit and each.used * 100 >= each.limit * WARNED_PERCENT
    ]  # fmt: skip


def last_success(connection: Connection, schedule_id: str, since_us: int) -> int | None:
    """Return when a run of a schedule has ended successfully since an instant, None if none has."""
    recent = or_(_a.slot.is_(None), _a.slot >= since_us - _SLOT_BEFORE_US)
    mine = (_a.schedule_id == schedule_id, _a.state == "done", recent, _a.finished_us >= since_us)
    found: int | None = connection.scalar(select(func.max(_a.finished_us)).where(*mine))
    return found


def _of(rule: AlertRule, columns: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the SQL conditions that an action belongs to a rule's tenant and schedules."""
    mine = (columns.tenant_id == rule.tenant_id,)
    return mine if rule.schedule_id is None else (*mine, columns.schedule_id == rule.schedule_id)


def _text(us: int | None) -> str | None:
    """Return an instant as RFC 3339 text; None for None."""
    return None if us is None else instant_text(from_us(us))
