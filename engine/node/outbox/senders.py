"""The senders of a node: mails when there is a server for them, and those of wings."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Row

from lodger.engine.capabilities.fetch_state import Send
from lodger.engine.core.clock import Clock
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import Event, Fault
from lodger.engine.core.settings import Settings
from lodger.engine.egress.way_out import WayOut
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import BatchCommitted
from lodger.engine.node.outbox.mailer import Mailer, MailServer
from lodger.engine.node.outbox.sender import Sender
from lodger.engine.store.connection.database import Database
from lodger.engine.store.queue.outbox import Failure
from lodger.engine.vault.vault import Vault

#: Make the senders beside the mailer, which send by a way out; appended to by wings.
SENDERS: list[Callable[[Database, Vault, Send, Clock], Sender]] = []


class Senders:
    """Starts and stops with its node; ``start`` and ``stop`` are safe to call twice."""

    def __init__(self, context: NodeContext, vault: Vault) -> None:
        store, settings = context.store, context.settings
        self._context = context
        self._way_out = WayOut(settings)
        self._all = [make(store.database, vault, self._way_out.send, store.clock) for make in SENDERS]
        if settings.mail_host:
            self._all.append(Mailer(store.database, server_of(settings), store.clock))
        for each in self._all:
            each.on_mark, each.on_fault = self._marked, self._failed
        context.bus.subscribe(BatchCommitted, self._committed)
        context.bus.subscribe(Event, self._raised)

    async def start(self) -> None:
        """Start the sender of mails, if there is a mail server, and those of wings."""
        for sender in self._all:
            await sender.start()

    async def stop(self) -> None:
        """Stop; a message on the wire may go out again after its lease."""
        for sender in self._all:
            await sender.stop()
        self._way_out.stop()

    def _committed(self, event: BatchCommitted) -> None:
        """Wake the senders if an attempt that was just committed queued a message."""
        wanted = {
            str(effect.get("effect"))
            for _claim, finished in event.batch
            if finished.journal is not None
            for effect in finished.effects
        }
        for sender in self._all:
            if sender.effect in wanted:
                sender.wake()

    def _raised(self, event: Event) -> None:
        """Wake all senders at an alert, so that its messages are delivered at once."""
        if event.kind == "alert":
            for sender in self._all:
                sender.wake()

    def _failed(self, service: str, error: Exception) -> None:
        """Publish a fault of a sender."""
        self._context.bus.publish(Fault(service, error))

    def _marked(self, row: Row[Any], state: str, failure: Failure | None) -> None:
        """Publish that a message was delivered, or given up."""
        if state in ("sent", "failed"):
            event = self._context.event(
                "delivered" if state == "sent" else "undelivered",
                (row.tenant_id, None, row.action_id),
                what=row.kind,
                to=row.target or row.message_id,
                error=failure.text if failure else None,
                tries=row.attempts + 1,
            )
            self._context.bus.publish(event)


def server_of(settings: Settings) -> MailServer:
    """Return the mail server of the settings.

    Raises:
        Unavailable: mail_password_unreadable.
    """
    return MailServer(
        settings.mail_host or "",
        settings.mail_port,
        sender=settings.mail_sender,
        username=settings.mail_user,
        password=_password(settings.mail_password_file),
        tls=settings.mail_tls,
    )


def _password(path: Path | None) -> str | None:
    """Read the password of the mail server; None without a readable file."""
    if path is None:
        return None
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").strip()
    raise Unavailable("mail_password_unreadable", path=path)
