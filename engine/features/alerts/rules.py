"""Alert rules of tenants: which alerts are raised, and where they are sent."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from sqlalchemy import Connection, delete, insert, select, update

from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.features.alerts.kinds import AlertKind, require_loud
from lodger.engine.features.alerts.tables import alert_queue, alert_rules, alerts
from lodger.engine.recurrence.calendar.zones import zone as known_zone
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.drivers import prepared
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.queue import events, ready_queue
from lodger.engine.store.rows import record
from lodger.engine.store.schedules import schedule_rows
from lodger.engine.store.schema.metadata import ARCHIVED
from lodger.engine.store.schema.scheduling import schedules
from lodger.engine.store.schema.scheduling import tenants as tenant_rows
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.named import Named

MAX_RULES = 50
MAX_RECEIVERS = 20
#: Thresholds of a rule that names none, seconds; None: until the schedule's next slot.
DEFAULT_S = {AlertKind.LATE: 60, AlertKind.OVERRAN: None, AlertKind.SILENT: 600}
#: Longest threshold, seconds.
MAX_S = 366 * 86_400
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}", re.ASCII)
_c = alert_rules.c


@dataclass(frozen=True, slots=True)
class AlertRule:
    """An alert rule.

    Attributes:
        schedule: name of its schedule, None for all of the tenant.
        mail: addresses; ``webhooks``: names of the tenant's webhooks.
        quiet: windows in which its alerts wait, in the local time of ``zone``.
        late_s, silent_s: thresholds of these kinds, seconds.
        overran_s: threshold of that kind; None: until the schedule's next slot.
    """

    ETAG: ClassVar = ("name", "created_at", "updated_at")

    tenant_id: str
    name: str
    schedule_id: str | None
    schedule: str | None
    kinds: tuple[str, ...]
    mail: tuple[str, ...]
    webhooks: tuple[str, ...]
    quiet: tuple[str, ...]
    zone: str
    late_s: int
    overran_s: int | None
    silent_s: int
    created_at: datetime
    updated_at: datetime


def put(connection: Connection, tenant_id: str, name: str, wanted: dict[str, Any], now_us: int) -> AlertRule:
    """Create an alert rule, or replace all values of an existing one.

    Args:
        wanted: the values of :class:`AlertRule` from ``schedule`` on.

    Raises:
        InputError: alert_name_invalid, alert_kind_unknown, alert_receiver_missing, alert_threshold_invalid, alerts_full,
            quiet_hours_invalid, zone_unknown.
        NotFound: tenant_unknown, schedule_unknown, webhook_unknown.
    """
    ready_queue.lock(connection, [tenant_id])
    values, schedule = check(name, wanted), wanted["schedule"]

    def require_receiver(each: str) -> None:
        """Raise NotFound unless the tenant has a webhook of this name."""
        if not events.has_receiver(connection, tenant_id, each):
            raise NotFound("webhook_unknown", tenant=tenant_id, name=each)

    _tenant, found, *_receivers = read_together(
        partial(tenants.get, connection, tenant_id),
        lambda: None if schedule is None else schedule_rows.get(connection, tenant_id, schedule),
        *(partial(require_receiver, each) for each in wanted["webhooks"]),
        connection=connection,
    )
    values |= {"schedule_id": None if found is None else found.id, "updated_us": now_us}
    mine = (_c.tenant_id == tenant_id, _c.name == name)
    if not connection.execute(update(alert_rules).where(*mine).values(values)).rowcount:
        if named.count(connection, tenant_id) >= MAX_RULES:
            raise InputError("alerts_full", tenant=tenant_id, maximum=MAX_RULES)
        prepared.write(
            connection, insert(alert_rules).values(tenant_id=tenant_id, name=name, created_us=now_us, **values)
        )
    return named.get(connection, tenant_id, name)


def check(name: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Check the values of a rule that need no ledger; return them as its row has them.

    Raises:
        InputError: as :func:`put`.
    """
    if not _NAME.fullmatch(name):
        raise InputError("alert_name_invalid", name=name)  # fmt: skip
    lists = {each: sorted(set(wanted[each])) for each in ("kinds", "mail", "webhooks", "quiet")}
    unknown = set(lists["kinds"]) - {str(each) for each in AlertKind}
    if unknown or not lists["kinds"]:
        shown = repr(min(unknown)) if unknown else "nothing"
        raise InputError("alert_kind_unknown", kind=shown, kinds=AlertKind)
    if not 0 < len(lists["mail"]) + len(lists["webhooks"]) <= MAX_RECEIVERS:
        raise InputError("alert_receiver_missing", name=name, max_receivers=MAX_RECEIVERS)  # fmt: skip
    require_loud(lists["quiet"])
    known_zone(wanted["zone"])
    thresholds = {each: wanted[each] for each in ("late_s", "overran_s", "silent_s")}
    for each, value in thresholds.items():
        kind = AlertKind(each.removesuffix("_s"))
        if value != DEFAULT_S[kind] and kind not in lists["kinds"]:
            raise InputError("alert_threshold_invalid.kind", threshold=each, kind=kind, kinds=lists["kinds"])
        if value is None and each == "overran_s":
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_S:
            raise InputError("alert_threshold_invalid", threshold=each, value=value, maximum=MAX_S)
    return {each: json.dumps(value) for each, value in lists.items()} | thresholds | {"zone": wanted["zone"]}


alert_rules.info[ARCHIVED] = lambda row, cells: check(row["name"], row | cells)


def list_active(connection: Connection) -> list[AlertRule]:
    """Return the alert rules of all active tenants."""
    # Not EXISTS: without statistics PostgreSQL would begin with all tenants.
    state = select(tenant_rows.c.state).where(tenant_rows.c.id == _c.tenant_id).scalar_subquery()
    rows = connection.execute(named.rows.where(state == "active").order_by(_c.tenant_id, _c.name))
    return [named.make(row) for row in rows]


def ask_any(connection: Connection) -> Callable[[], bool]:
    """Query whether any tenant has an alert rule; the returned function returns the answer."""
    asked = _any.ask(connection, {})
    return lambda: bool(asked())


_any = Prepared(lambda _driver: select(_c.name).limit(1))


def lock_all(connection: Connection) -> None:
    """Lock every rule until the end of the transaction: two nodes never evaluate them at once."""
    connection.execute(select(_c.name).order_by(_c.tenant_id, _c.name).with_for_update()).all()


def erase(connection: Connection, tenant_id: str, name: str) -> AlertRule:
    """Delete an alert rule with its alerts, and return it.

    Raises:
        NotFound: alert_unknown.
    """
    found = named.erase(connection, tenant_id, name)
    prepared.write(connection, delete(alerts).where(alerts.c.tenant_id == tenant_id, alerts.c.rule == name))
    if not named.count(connection, tenant_id):
        prepared.write(connection, delete(alert_queue).where(alert_queue.c.tenant_id == tenant_id))
    return found


def covered(rule: AlertRule, schedule_id: str | None) -> bool:
    """Whether a rule is about a schedule; None is an action without one."""
    return rule.schedule_id in (None, schedule_id)


def deleted_schedules(connection: Connection, ids: Iterable[str]) -> set[str]:
    """Return those of these schedules that were deleted."""
    found = select(schedules.c.id).where(schedules.c.id.in_(set(ids)), schedules.c.deleted_us.is_not(None))
    return set(connection.scalars(found))


named = Named(
    alert_rules,
    select(alert_rules, schedules.c.name.label("schedule")).outerjoin(
        schedules, (schedules.c.tenant_id == _c.tenant_id) & (schedules.c.id == _c.schedule_id)
    ),
    partial(record, AlertRule),
    lambda tenant, name: NotFound("alert_unknown", tenant=tenant, name=name),
)
