"""Alert rules and alerts on the command line."""

from lodger.engine.output import groups, views
from lodger.engine.output.result_output import say

groups.HELP["alert"] = "Manage alert rules: messages to people about failing, late or silent schedules."
views.COLUMNS |= {
    "AlertRule": (
        ("rule", "name"), ("schedule", lambda each: each.schedule or "all"), ("kinds", "kinds"),
        ("receivers", lambda each: " ".join((*each.mail, *each.webhooks))), ("quiet", lambda each: ", ".join(each.quiet)),
    ),
    "Alert": (
        ("raised", "opened_at"), ("kind", "kind"), ("schedule", "schedule"), ("rule", "rule"),
        ("over", "closed_at"), ("sent", "sent_at"),
    ),
}  # fmt: skip
views.VIEWS["alerts.test"] = lambda count: say(
    f"test messages that wait to be sent, one for each receiver: {count}; lodger action outbox shows them"
)
