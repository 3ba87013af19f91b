"""The verbs on webhooks, the receivers of a tenant's events."""

from collections.abc import Iterable

from lodger.engine.core.access.roles import Role
from lodger.engine.features.webhooks import webhooks
from lodger.engine.features.webhooks.webhooks import CreatedWebhook, Webhook
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation

# Inside the class ``list`` is a verb.
WebhookList = list[Webhook]


class Webhooks(Noun[M]):
    """Receivers of the events that scripts emit, and of the engine's own, such as ``lodger.action.done`` and ``lodger.action.failed``."""

    @operation("PUT", "/tenants/{tenant_id}/webhooks/{name}", Role.EDITOR, secret=True, tagged=True, stores=True)
    def put(
        self, tenant_id: str, name: str, url: str, *, events: Iterable[str] = ("*",), style: str = "standard"
    ) -> CreatedWebhook | Webhook:
        """Create a webhook, or change its URL, events and style.

        The result of a creation contains the secret for the receiver's signature checks, only once.

        Args:
            url: URL with http or https, a public host, and a port that the operator allows.
            events: names of events, such as ``order.*``; ``*`` for all events of scripts, ``lodger.*`` for those of the
                engine.
            style: standard, or slack for bodies of the form {"text": …} that Slack and compatible chats accept.

        Raises:
            InputError: webhook_name_invalid, webhook_url_invalid, webhook_style_unknown, event_invalid, webhooks_full.
            NotFound: tenant_unknown.
            Unavailable: keys_unset and other errors of the keys.
        """
        with self._changing(Webhooks.put, tenant_id, name, name) as change:
            change.before(webhooks.named.find(change.connection, tenant_id, name))
            made = webhooks.put(self.vault, change.connection, tenant_id, name, url, events, self._now_us, style=style)
            return change.made(made, after=made.webhook if isinstance(made, CreatedWebhook) else made)

    @operation("POST", "/tenants/{tenant_id}/webhooks/{name}/renew", Role.EDITOR, secret=True, tagged=True)
    def renew(self, tenant_id: str, name: str) -> CreatedWebhook:
        """Create a new secret of a webhook, with which messages are signed from now on.

        Raises:
            NotFound: webhook_unknown.
            Unavailable: keys_unset and other errors of the keys.
        """
        with self._changing(Webhooks.renew, tenant_id, name, name) as change:
            change.before(webhooks.named.get(change.connection, tenant_id, name))
            made = webhooks.renew_secret(self.vault, change.connection, tenant_id, name, self._now_us)
            return change.made(made, after={"name": name, "secret": "new"})

    @operation("GET", "/tenants/{tenant_id}/webhooks/{name}", Role.VIEWER)
    def get(self, tenant_id: str, name: str) -> Webhook:
        """Return one webhook.

        Raises:
            NotFound: webhook_unknown.
        """
        return self._read(webhooks.named.get, tenant_id, name)

    @operation("GET", "/tenants/{tenant_id}/webhooks", Role.VIEWER)
    def list(self, tenant_id: str) -> WebhookList:
        """List a tenant's webhooks by name.

        Raises:
            NotFound: tenant_unknown.
        """
        return self._read(webhooks.named.list_all, tenant_id)

    @operation(
        "DELETE",
        "/tenants/{tenant_id}/webhooks/{name}",
        Role.EDITOR,
        status=204,
        tagged=True,
        confirm="delete webhook {name} of {tenant_id}",
    )
    def delete(self, tenant_id: str, name: str) -> None:
        """Delete a webhook; its waiting messages are not sent.

        Raises:
            NotFound: webhook_unknown.
        """
        with self._changing(Webhooks.delete, tenant_id, name, name) as change:
            change.before(webhooks.delete(change.connection, tenant_id, name))
            change.made(None, after=None)
