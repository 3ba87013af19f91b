"""Webhooks on the command line."""

from typing import Any

from lodger.engine.output import groups, views
from lodger.engine.output.result_output import say


def _webhook(made: Any) -> None:
    """Show a webhook's URL, and a new secret, the only time."""
    hook = getattr(made, "webhook", made)
    say(f"webhook {hook.name}: {hook.url}, events {' '.join(hook.events)}")
    if hook is not made:
        say(f"secret (shown only once): {made.secret}")


groups.HELP["webhook"] = "Manage webhooks: URLs that receive a tenant's events."
views.COLUMNS["Webhook"] = (("webhook", "name"), ("url", "url"), ("events", "events"))
views.SHORT_VIEWS |= {"Webhook": _webhook, "CreatedWebhook": _webhook}
