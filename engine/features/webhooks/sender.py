"""Sends webhooks of the outbox: signed, to the address that the platform gave, through the same guard as every request."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, ClassVar

from sqlalchemy import Row

from lodger.engine.core import strict_json
from lodger.engine.core.access.origins import Origin
from lodger.engine.core.clock import Clock, from_us
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Answer
from lodger.engine.egress import signature, target
from lodger.engine.egress.request import Redirect, Request
from lodger.engine.egress.request_errors import NoAnswer
from lodger.engine.features.webhooks import webhooks
from lodger.engine.features.webhooks.webhooks import Webhook
from lodger.engine.node.outbox.sender import Sender
from lodger.engine.store.connection.database import Database
from lodger.engine.store.queue import outbox
from lodger.engine.store.queue.events import ENGINE_PREFIX
from lodger.engine.store.queue.outbox import Failure, RetryPolicy
from lodger.engine.vault.vault import Vault

#: Seconds within which a receiver answers.
ANSWER_S = 10.0
#: Bytes of a receiver's answer that are read; they are not used.
MAX_ANSWER_BYTES = 64 * 1024
#: The one text for receivers that cannot be reached, are not allowed, or have names that do not resolve.
UNREACHABLE = "the receiver is not allowed, has no known name, or gave no answer"
_log = logging.getLogger("lodger.egress")


class WebhookSender(Sender):
    """The service that sends webhooks; receivers are served beside each other, each one message at a time.

    Args:
        vault: opens the secrets that sign.
        send: the way out.
    """

    name: ClassVar[str] = "webhook"
    effect: ClassVar[str] = "event"
    lanes: ClassVar[int] = 16
    each: ClassVar[int] = 10
    patience = RetryPolicy(tries=12, pause_s=10, longest_pause_s=6 * 3600)
    poll_s = 1.0

    def __init__(
        self, database: Database, vault: Vault, send: Callable[[Request], Awaitable[Answer]], clock: Clock
    ) -> None:
        super().__init__(database, clock)
        self._vault = vault
        self._send = send

    async def deliver(self, rows: list[Row[Any]]) -> None:
        """Send one receiver's messages in their order; after a failure that is not final, the others wait."""
        for number, row in enumerate(rows):
            failure = await self._try(row)
            await self.mark(row, failure)
            if failure is not None and not failure.final:
                await asyncio.to_thread(self._put_back, rows[number + 1 :], row)
                return

    def _put_back(self, rows: list[Row[Any]], failed: Row[Any]) -> None:
        """Let messages wait with the one that has failed before them; they were not tried."""
        with self._database.write() as connection:
            outbox.put_back(connection, rows, failed, self.clock.now_us())

    async def _try(self, row: Row[Any]) -> Failure | None:
        """Send a message; return the failure, None if the receiver took it."""
        try:
            route = await asyncio.to_thread(self._route, row)
        except Unavailable as error:
            return Failure(f"this node cannot sign the message: {error.code}", final=False)
        if route is None:
            return Failure(webhooks.DELETED, final=True)
        try:
            answer = await self._send(self.request(row, *route))
        except NoAnswer as none:
            # A tenant reads the failure: a reason would tell which names and addresses exist inside. The URL's path may be a secret.
            _log.warning("webhook %s of tenant %s to %r: %s: %s", row.target, row.tenant_id, target.host_of(route[0].url), none.code,
                         none.reason)  # fmt: skip
            return Failure(f"{none.code}: {UNREACHABLE}", final=False)
        except Unavailable as error:
            _log.warning("webhook %s of tenant %s: %s; %s", row.target, row.tenant_id, error, error.fix)
            return Failure(f"this node cannot send messages: {error.code}", final=False)
        if not 200 <= answer.status < 300:
            return Failure(f"the receiver answered {answer.status}", final=answer.status == HTTPStatus.GONE)
        return None

    def request(self, row: Row[Any], webhook: Webhook, secret: str) -> Request:
        """Return the request of one attempt: body and id are always the same, the signature has the present time.

        Raises:
            Refused: the webhook's URL is invalid.
        """
        payload = json.loads(row.payload)
        stamp = strict_json.instant_text(from_us(row.created_us))
        body = strict_json.dump(_content(payload, stamp, webhook.style)).encode()
        place = target.read(webhook.url).origin
        signed = signature.headers(secret, row.message_id, self.clock.now_us() // 1_000_000, body)

        def is_place(origin: Origin) -> bool:
            """Whether a request goes to the webhook's own address, the only one that it may reach."""
            return origin == place

        return Request(
            "POST", webhook.url, (("content-type", "application/json"), *signed), body, Redirect.MANUAL, allowed=is_place,
            payer=webhooks.owner(row.tenant_id, row.target)[0], total_s=ANSWER_S, max_body=MAX_ANSWER_BYTES,
        )  # fmt: skip

    def _route(self, row: Row[Any]) -> tuple[Webhook, str] | None:
        """Return the webhook of a message, with the secret that signs it; None if it was deleted."""
        with self._database.read() as connection:
            return webhooks.route(self._vault, connection, *webhooks.owner(row.tenant_id, row.target))


def _content(payload: dict[str, Any], stamp: str, style: str) -> dict[str, Any]:
    """Return the body of a message; for a chat its text, or what it is about if it has none."""
    if style == "standard":
        return {**payload, "timestamp": stamp}
    data, tenant = payload["data"], payload.get("tenant")
    text = data.get("text") if isinstance(data, dict) else None
    shown = text if isinstance(text, str) else f"{payload['type']}: {strict_json.dump(data)}"
    if tenant is not None or payload["type"].startswith(ENGINE_PREFIX):
        # Who reads it is not who wrote it: the text of an alert quotes scripts. It makes no links and calls no channel.
        shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": shown if tenant is None else f"{tenant}: {shown}"}
