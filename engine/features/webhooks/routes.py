"""ETags of webhooks."""

from lodger.engine.features.webhooks.webhooks import Webhook
from lodger.engine.server.operation_call import TAGGED

TAGGED[Webhook] = ("name", "created_at", "updated_at", "state")
