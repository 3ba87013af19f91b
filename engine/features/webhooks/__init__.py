"""Wing: webhooks, URLs that receive a tenant's events."""

from lodger.engine.features.webhooks import webhooks
from lodger.engine.features.webhooks.operations import Webhooks
from lodger.engine.features.webhooks.sender import WebhookSender
from lodger.engine.node.outbox import senders
from lodger.engine.store.queue import events

events.RECEIVERS.append(events.Receivers(webhooks.enqueue, webhooks.subscriptions, webhooks.exist, webhooks.named.find))
senders.SENDERS.append(WebhookSender)

__all__ = ["Webhooks"]
