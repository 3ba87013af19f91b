"""Evaluates alert rules: raises and closes alerts, and puts their messages into the outbox, all in one transaction.

Whatever is killed, an alert is raised once: its conditions stand in the ledger, and its row, its messages and the end of
the queue's rows are committed together.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, delete, exists, insert, literal, or_, select, tuple_

from lodger.engine.core.clock import from_us
from lodger.engine.core.strict_json import instant_text
from lodger.engine.features.alerts import conditions, messages, rules
from lodger.engine.features.alerts.conditions import Condition, QueueKey
from lodger.engine.features.alerts.kinds import UNTIL_SUCCESS, AlertKind, is_quiet
from lodger.engine.features.alerts.messages import Alert
from lodger.engine.features.alerts.rules import AlertRule
from lodger.engine.features.alerts.tables import alert_queue, alert_rules, alerts
from lodger.engine.store.bulk import update_row
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.queue import events, outbox
from lodger.engine.store.records import Json
from lodger.engine.store.rows import record
from lodger.engine.store.schema import script_data
from lodger.engine.store.schema.scheduling import schedules

#: How long alerts that are over are kept, microseconds.
KEPT_US = 30 * 86_400_000_000
_c = alerts.c
#: Columns of an alert that change after it was raised.
_CHANGING = ("occurrences", "last_us", "closed_us", "sent_us", "message")


#: The event of a slow-down.
SLOWED = f"{events.ENGINE_PREFIX}schedule.slowed"
#: Rule, schedule, kind and subject of an alert; there is one open alert of each.
_Key = tuple[str, str, str | None, str, str]


@dataclass(slots=True)
class Changes:
    """Changes that an evaluation has found."""

    consumed: list[QueueKey] = field(default_factory=list)
    raised: list[dict[str, Any]] = field(default_factory=list)
    changed: dict[str, dict[str, Any]] = field(default_factory=dict)
    to_send: list[tuple[AlertRule, list[dict[str, Any]]]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.consumed or self.raised or self.changed or self.to_send)


def find(context: StoreContext, connection: Connection, now_us: int) -> Changes:
    """Return the changes of alerts at this instant; reads only."""
    changes = Changes()
    active = rules.list_active(connection)
    changes.consumed, queued = conditions.queued(connection, {each.tenant_id for each in active})
    rows = connection.execute(select(alerts).where(or_(_c.closed_us.is_(None), _c.sent_us.is_(None))).order_by(_c.id))
    known = [dict(row) for row in rows.mappings()]
    open_alerts = {_key(each): each for each in known if each["closed_us"] is None}
    _close_deleted(connection, changes, open_alerts, now_us)
    for rule in active:
        lasting = conditions.lasting(context, connection, rule, now_us)
        happened = [
            each for each in queued if each.tenant_id == rule.tenant_id and rules.covered(rule, each.schedule_id)
        ]
        found = [each for each in (*happened, *lasting) if each.kind in rule.kinds]
        for each in found:
            _raise(context, changes, open_alerts, rule, each)
        _close(context, connection, changes, open_alerts, rule, found, now_us)
        unsent = [each for each in (*known, *changes.raised) if _of(rule, each) and each["sent_us"] is None]
        if unsent and not is_quiet(rule.quiet, rule.zone, from_us(now_us)):
            changes.to_send.append((rule, unsent))
    return changes


def _raise(
    context: StoreContext, changes: Changes, open_alerts: dict[_Key, dict[str, Any]], rule: AlertRule, found: Condition
) -> None:
    """Raise an alert, unless it is open already."""
    key = (rule.tenant_id, rule.name, found.schedule_id, str(found.kind), found.subject)
    already = open_alerts.get(key)
    if already is not None:
        if found.edge:
            already["occurrences"] += 1
            already["last_us"] = max(already["last_us"], found.at_us)
            changes.changed[already["id"]] = already
        return
    row = {
        "tenant_id": rule.tenant_id, "id": context.ids.new(), "rule": rule.name, "kind": str(found.kind),
        "schedule_id": found.schedule_id, "action_id": found.action_id, "subject": found.subject,
        "details": json.dumps(found.details), "occurrences": 1, "opened_us": found.at_us, "last_us": found.at_us, "closed_us": None,
        "sent_us": None, "message": None,
    }  # fmt: skip
    changes.raised.append(row)
    # A slow-down is reported once by itself, and without a schedule there is no later success.
    if found.kind is AlertKind.SLOW or (found.kind in UNTIL_SUCCESS and found.schedule_id is None):
        row["closed_us"] = found.at_us
    else:
        open_alerts[key] = row


def _close_deleted(
    connection: Connection, changes: Changes, open_alerts: dict[_Key, dict[str, Any]], now_us: int
) -> None:
    """Close the alerts of deleted schedules, which no run can close."""
    gone = rules.deleted_schedules(
        connection, {row["schedule_id"] for row in open_alerts.values() if row["schedule_id"]}
    )
    for key, row in list(open_alerts.items()):
        if row["schedule_id"] in gone:
            row["closed_us"] = now_us
            changes.changed[row["id"]] = row
            del open_alerts[key]


def _close(
    context: StoreContext,
    connection: Connection,
    changes: Changes,
    open_alerts: dict[_Key, dict[str, Any]],
    rule: AlertRule,
    found: Iterable[Condition],
    now_us: int,
) -> None:
    """Close the open alerts of a rule that are over; report the recovery of each schedule once."""
    last = {(each.schedule_id, str(each.kind), each.subject) for each in found if not each.edge}
    over: dict[str, tuple[int, list[dict[str, Any]]]] = {}
    for key, row in list(open_alerts.items()):
        if not _of(rule, row) or key[2:] in last:
            continue
        if row["kind"] == AlertKind.BUDGET:
            end_us: int | None = now_us
        else:
            end_us = conditions.last_success(connection, row["schedule_id"], row["last_us"])
        if end_us is None:
            continue
        row["closed_us"] = end_us
        changes.changed[row["id"]] = row
        del open_alerts[key]
        if row["schedule_id"] is not None:
            over.setdefault(row["schedule_id"], (end_us, []))[1].append(row)
    if AlertKind.RECOVERED not in rule.kinds:
        return
    for schedule_id, (end_us, ended) in over.items():
        details = {
            "after": sorted(each["kind"] for each in ended),
            "since": instant_text(from_us(min(each["opened_us"] for each in ended))),
        }
        recovery = Condition(rule.tenant_id, AlertKind.RECOVERED, end_us, schedule_id, edge=True, details=details)
        _raise(context, changes, {}, rule, recovery)
        changes.raised[-1]["closed_us"] = end_us


def apply(context: StoreContext, connection: Connection, now_us: int) -> list[Alert]:
    """Evaluate every rule, store the changes of alerts, and return the raised ones."""
    rules.lock_all(connection)
    changes = find(context, connection, now_us)
    for rule, unsent in changes.to_send:
        message = context.ids.new()
        outbox.enqueue(connection, messages.compose(rule, _alerts(connection, unsent), message), now_us)
        for each in unsent:
            each |= {"sent_us": now_us, "message": message}
            changes.changed[each["id"]] = each
    if changes.raised:
        connection.execute(insert(alerts), changes.raised)
    for identity in changes.changed.keys() - {each["id"] for each in changes.raised}:
        row = changes.changed[identity]
        update_row(connection, alerts, row["tenant_id"], identity, **{name: row[name] for name in _CHANGING})
    if changes.consumed:
        key = tuple_(*alert_queue.primary_key.columns)
        connection.execute(delete(alert_queue).where(key.in_(changes.consumed)))
    return _alerts(connection, changes.raised)


def purge(connection: Connection, now_us: int) -> None:
    """Delete alerts that have long been over, with their messages; an open one stays, or it would be raised again."""
    old = (
        select(_c.tenant_id, _c.id, _c.message)
        .where(_c.closed_us < now_us - KEPT_US)
        .order_by(_c.tenant_id)
        .limit(1000)
    )
    rows, sent = connection.execute(old).all(), script_data.outbox
    messages_of = [(row.tenant_id, row.message) for row in rows if row.message is not None]
    connection.execute(delete(sent).where(tuple_(sent.c.tenant_id, sent.c.action_id).in_(messages_of)))
    connection.execute(delete(alerts).where(tuple_(_c.tenant_id, _c.id).in_([(row.tenant_id, row.id) for row in rows])))


def list_raised(connection: Connection, tenant_id: str, *, open_only: bool, limit: int) -> list[Alert]:
    """Return a tenant's alerts, newest first."""
    found = select(alerts).where(_c.tenant_id == tenant_id).order_by(_c.id.desc()).limit(limit)
    if open_only:
        found = found.where(_c.closed_us.is_(None))
    return _alerts(connection, [dict(row) for row in connection.execute(found).mappings()])


def hear(
    connection: Connection, tenant_id: str, event: str, data: Json, place: tuple[str, int, int], _now_us: int
) -> int:
    """Queue a slow-down, if the tenant has alert rules; other events raise no alert. Return 0: no message enters the outbox yet."""
    if event != SLOWED or not isinstance(data, dict):
        return 0
    details = {name: value for name, value in data.items() if name not in ("tenant", "schedule", "action")}
    watched = exists().where(alert_rules.c.tenant_id == tenant_id)
    row = select(literal(tenant_id), literal(place[0], type_=_c.id.type), literal("slow"), literal(json.dumps(details)))
    columns = ["tenant_id", "action_id", "kind", "details"]
    statement = driver_of(connection).insert(alert_queue).from_select(columns, row.where(watched))
    connection.execute(statement.on_conflict_do_nothing())
    return 0


def _key(row: dict[str, Any]) -> _Key:
    """Return rule, kind and subject of an alert's row, which identify an open alert."""
    return row["tenant_id"], row["rule"], row["schedule_id"], row["kind"], row["subject"]


def _of(rule: AlertRule, row: dict[str, Any]) -> bool:
    """Whether an alert's row belongs to a rule."""
    return (row["tenant_id"], row["rule"]) == (rule.tenant_id, rule.name)


def _alerts(connection: Connection, rows: list[dict[str, Any]]) -> list[Alert]:
    """Return the alerts of rows, with the names of their schedules."""
    ids = {each["schedule_id"] for each in rows if each["schedule_id"]}
    names = {
        row.id: row.name
        for row in connection.execute(select(schedules.c.id, schedules.c.name).where(schedules.c.id.in_(ids)))
    }
    return [record(Alert, each, schedule=names.get(each["schedule_id"])) for each in rows]
