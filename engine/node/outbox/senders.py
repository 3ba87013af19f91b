"""The couriers of a node: mails when there is a server for them, webhooks always."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.egress.way_out import WayOut
from lodger.engine.node.outbox.mailer import Mailer, MailServer
from lodger.engine.node.outbox.sender import Courier
from lodger.engine.node.outbox.webhooks import Hooks
from lodger.engine.store.queue import outbox
from lodger.engine.store.queue.outbox import Failure

if TYPE_CHECKING:
    from lodger.engine.core.execution import Finished
    from lodger.engine.node.node import Node

_EFFECTS = {"mail": "mail", "event": "webhook"}


class Couriers:
    """Starts and stops with its node; ``start`` and ``stop`` are safe to call twice."""

    def __init__(self, node: Node) -> None:
        books, settings = node.books, node.settings
        self._node = node
        self._way_out = WayOut(settings)
        self._all: list[Courier] = [
            Hooks(
                books.database,
                node.engine.vault,
                self._way_out.send,
                books.clock,
                poll_s=1.0,
                on_mark=self._told,
                on_fault=node.failed,
                next_due=self._next_due,
            )
        ]
        if settings.mail_host:
            self._all.append(
                Mailer(
                    books.database,
                    server_of(settings),
                    books.clock,
                    on_mark=self._told,
                    on_fault=node.failed,
                    next_due=self._next_due,
                )
            )

    async def start(self) -> None:
        """Begin to send."""
        for courier in self._all:
            await courier.start()

    async def stop(self) -> None:
        """Stop; what is on the wire may go out again after its lease."""
        for courier in self._all:
            await courier.stop()
        self._way_out.stop()

    def poke(self, finished: Finished) -> None:
        """Look at once when an attempt that was just committed asked for something to be sent."""
        if finished.journal is None:
            return
        wanted = {_EFFECTS.get(str(effect.get("effect"))) for effect in finished.effects}
        for courier in self._all:
            if courier.kind in wanted:
                courier.poke()

    async def _next_due(self, kind: str) -> int | None:
        pen = self._node.pen
        if not pen.sees:
            return 0  # asking twice would be no cheaper
        return await pen.standing(("outbox", kind), partial(outbox.next_due, kind=kind))

    def _told(self, row: Row[Any], state: str, failure: Failure | None) -> None:
        if state in ("sent", "failed"):
            kind = "delivered" if state == "sent" else "undelivered"
            whose = (row.tenant_id, None, row.action_id)
            to = row.target or row.message_id
            self._node.tell(
                kind, whose, what=row.kind, to=to, error=failure.text if failure else None, tries=row.attempts + 1
            )


def server_of(settings: Settings) -> MailServer:
    """Give the mail server of the settings.

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
    if path is None:
        return None
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").strip()
    raise Unavailable(
        "mail_password_unreadable",
        f"the password at {path} cannot be read",
        fix="check LODGER_MAIL_PASSWORD_FILE and its rights",
    )
