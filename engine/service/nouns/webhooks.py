"""The verbs on webhooks: where a tenant's events go."""

from collections.abc import Iterable
from dataclasses import dataclass

from lodger.engine.service.nouns.noun import Verbs
from lodger.engine.store.tenants import webhooks
from lodger.engine.store.tenants.webhooks import NewWebhook, Webhook
from lodger.engine.vault.vault import Vault

# Inside the noun the word ``list`` is a verb.
WebhookList = list[Webhook]


@dataclass(frozen=True, slots=True)
class Webhooks(Verbs):
    """Where events go that scripts emit, and those of the engine's own, ``lodger.action.done`` and ``lodger.action.failed``."""

    vault: Vault

    def put(self, tenant_id: str, name: str, url: str, *, events: Iterable[str] = ("*",)) -> NewWebhook | Webhook:
        """Make a webhook, or change where it goes and for what; one that is off is on again.

        The answer to making one holds the secret that its receiver checks signatures with, this once.

        Args:
            url: http or https, at a public address and a port that the operator allows.
            events: names, ``order.*``, ``*`` for all that scripts emit; ``lodger.*`` for the engine's own.

        Raises:
            InputError: webhook_name_invalid, webhook_url_invalid, event_invalid, webhooks_full.
            NotFound: tenant_unknown.
            Unavailable: keys_unset and the like.
        """
        with self._changing("webhooks.put", tenant_id, name, name) as change:
            before = [each for each in webhooks.list_all(change.connection, tenant_id) if each.name == name]
            change.before(before[0] if before else None)
            made = webhooks.put(self.vault, change.connection, tenant_id, name, url, events, self._now_us)
            return change.made(made, after=made.webhook if isinstance(made, NewWebhook) else made)

    def renew(self, tenant_id: str, name: str) -> NewWebhook:
        """Give it a new secret; for a day what is sent is signed with the one before, too. Raises NotFound, Unavailable."""
        with self._changing("webhooks.renew", tenant_id, name, name) as change:
            change.before(webhooks.get(change.connection, tenant_id, name))
            made = webhooks.renew(self.vault, change.connection, tenant_id, name, self._now_us)
            return change.made(made, after={"name": name, "secret": "new"})

    def get(self, tenant_id: str, name: str) -> Webhook:
        """Give one; raises NotFound."""
        with self.books.database.read() as connection:
            return webhooks.get(connection, tenant_id, name)

    def list(self, tenant_id: str) -> WebhookList:
        """Give a tenant's webhooks, by name; raises NotFound."""
        with self.books.database.read() as connection:
            return webhooks.list_all(connection, tenant_id)

    def delete(self, tenant_id: str, name: str) -> None:
        """Delete one; what waits for it is not sent any more. Raises NotFound."""
        with self._changing("webhooks.delete", tenant_id, name, name) as change:
            change.before(webhooks.erase(change.connection, tenant_id, name))
            change.made(None, after=None)
