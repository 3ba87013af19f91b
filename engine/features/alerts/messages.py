"""Messages of alerts: one mail and one webhook event for all alerts of a rule that are sent at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lodger.engine.core.plain_text import one_line
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.core.strict_json import dump, instant_text
from lodger.engine.features.alerts.rules import AlertRule
from lodger.engine.store.queue import events

#: The webhook event of alerts.
EVENT = events.ENGINE_PREFIX + "alert"
#: Alerts that one message describes; it says how many more there are.
MAX_LINES = 50


@dataclass(frozen=True, slots=True)
class Alert:
    """A raised alert.

    Attributes:
        schedule: the schedule's name, None without one.
        details: values of its kind.
        occurrences: how often it has happened while it was open.
        closed_at: when it was over; None while it is open.
        sent_at: when its messages entered the outbox; None while it waits for the end of quiet hours.
    """

    tenant_id: str
    id: str
    rule: str
    kind: str
    schedule_id: str | None
    schedule: str | None
    action_id: str | None
    details: dict[str, Any]
    occurrences: int
    opened_at: datetime
    closed_at: datetime | None
    sent_at: datetime | None


def compose(rule: AlertRule, raised: Sequence[Alert], message: str) -> list[dict[str, Any]]:
    """Return the outbox rows of a message: one mail to all addresses, and one event for each webhook.

    Args:
        message: id of the message, from which the ids of the rows are made.
    """
    lines = [_line(each) for each in raised[:MAX_LINES]]
    if len(raised) > MAX_LINES:
        lines.append(f"and {len(raised) - MAX_LINES} more")
    subject = f"[Lodger] {rule.tenant_id}: " + (_about(raised[0]) if len(raised) == 1 else f"{len(raised)} alerts")
    return rows(rule, subject, lines, [to_jsonable(each) for each in raised[:MAX_LINES]], message)


def test(rule: AlertRule, message: str) -> list[dict[str, Any]]:
    """Return the outbox rows of a test message."""
    return rows(rule, f"[Lodger] {rule.tenant_id}: test of alert rule {rule.name}", ["This is a test."], [], message)


def rows(rule: AlertRule, subject: str, lines: Sequence[str], raised: list[Any], message: str) -> list[dict[str, Any]]:
    """Return the outbox rows that send a text: a mail to all addresses of a rule, an event to each of its webhooks."""
    fixed = {"tenant_id": rule.tenant_id, "action_id": message, "step": 0, "n": 0}
    text = "\n".join([*lines, "", f"alert rule {rule.name} of tenant {rule.tenant_id}"])
    made = []
    if rule.mail:
        mail = {"to": list(rule.mail), "subject": subject, "text": text, "html": None, "replyTo": None}
        made.append(
            fixed
            | {"id": message, "kind": "mail", "target": "", "message_id": f"<{message}@lodger>", "payload": dump(mail)}
        )
    data = {"tenant": rule.tenant_id, "rule": rule.name, "text": "\n".join([subject, *lines]), "alerts": raised}
    for number, name in enumerate(rule.webhooks):
        identity = f"{message}-{number}"
        made.append(fixed | {"id": identity, "kind": "webhook", "target": name, "message_id": f"msg_{identity}",
                             "payload": dump({"type": EVENT, "data": data})})  # fmt: skip
    return made


def _about(alert: Alert) -> str:
    """Return what has happened to which schedule or budget, in words."""
    of = f"schedule {alert.schedule}" if alert.schedule else str(alert.details.get("budget", "an action"))
    return one_line(f"{of} {_WORDS[alert.kind]}")


_WORDS = {
    "failed": "failed", "recovered": "recovered", "late": "is late", "missed": "missed a slot", "overran": "overran",
    "slow": "has become slower", "budget": "is used to 80 %", "silent": "is silent",
}  # fmt: skip


def _line(alert: Alert) -> str:
    """Return an alert as one line of a message."""
    details = ", ".join(f"{name} {_plain(value)}" for name, value in alert.details.items())
    action = f", action {alert.action_id}" if alert.action_id else ""
    return one_line(f"{instant_text(alert.opened_at)}  {_about(alert)}: {details}{action}")


def _plain(value: Any) -> str:
    """Return a detail of an alert as text."""
    return " ".join(str(each) for each in value) if isinstance(value, list) else str(value)
