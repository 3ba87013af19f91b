"""Sends what waits in the outbox: at least once on the wire, always under the same Message-ID.

A mail is ``queued``, then ``sending`` under a lease, then ``sent`` or ``failed``. A server's temporary refusal and every
failure to reach it put it back with a growing pause; a permanent refusal or too many tries fail it, with the server's words.
"""

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP as WIRE
from email.utils import format_datetime
from typing import Any, Protocol

import aiosmtplib
from sqlalchemy import Connection, Row, and_, func, select, update

from lodger.engine.clock import Clock, from_us
from lodger.engine.ledger.schema.data import outbox

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_LEASE_US = 180_000_000


class Writable(Protocol):
    """An open database (:class:`lodger.engine.ledger.database.Database`)."""

    def read(self) -> AbstractContextManager[Connection]:
        """Give one consistent snapshot."""
        ...

    def write(self) -> AbstractContextManager[Connection]:
        """Give one transaction that may write."""
        ...


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mails go.

    Attributes:
        host, port: of the SMTP server.
        sender: address of every mail's From; a script cannot choose it.
        username, password: for AUTH, None without.
        tls: ``starttls`` (refused without it), ``implicit``, or ``none`` for a server on this machine.
        timeout_s: of each command.
        tries: sendings before a mail fails.
        pause_s, longest_pause_s: before the second try, doubling up to the longest.
        batch: mails taken at once.
    """

    host: str
    port: int = 25
    sender: str = "lodger@localhost"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: str = "none"
    timeout_s: float = 30.0
    tries: int = 10
    pause_s: float = 30.0
    longest_pause_s: float = 3600.0
    batch: int = 50


class Mailer:
    """The service that empties the outbox.

    Args:
        database: the ledger's.
        server: where mails go.
        clock: for leases and pauses.
        poll_s: how often the outbox is looked at when nobody calls :meth:`poke`.
        on_round: told how many mails a round has taken.
    """

    def __init__(
        self,
        database: Writable,
        server: MailServer,
        clock: Clock,
        *,
        poll_s: float = 5.0,
        on_round: Callable[[int], None] | None = None,
    ) -> None:
        self._database = database
        self._server = server
        self._clock = clock
        self._poll_s = poll_s
        self._on_round = on_round
        self._poked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to send; safe to call twice."""
        if self._task is None:
            self._task = asyncio.create_task(self._serve(), name="lodger-mailer")

    async def stop(self) -> None:
        """Stop; a mail on the wire may go out again after its lease. Safe to call twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def poke(self) -> None:
        """Say that mails were just queued."""
        self._poked.set()

    async def _serve(self) -> None:
        while True:
            self._poked.clear()
            taken = await self.round()
            if self._on_round is not None:
                self._on_round(taken)
            if not taken:
                await self._nap()

    async def _nap(self) -> None:
        nap = asyncio.ensure_future(self._clock.sleep(self._poll_s))
        poked = asyncio.ensure_future(self._poked.wait())
        try:
            await asyncio.wait((nap, poked), return_when=asyncio.FIRST_COMPLETED)
        finally:
            nap.cancel()
            poked.cancel()
            await asyncio.gather(nap, poked, return_exceptions=True)

    async def round(self) -> int:
        """Take the mails that are due and try each once; gives how many were taken."""
        mails = await asyncio.to_thread(self._take)
        if not mails:
            return 0
        client = self._client()
        try:
            for mail in mails:
                failure = await self._try(client, mail)
                await asyncio.to_thread(self._mark, mail, failure)
        finally:
            client.close()
        return len(mails)

    def _client(self) -> aiosmtplib.SMTP:
        server = self._server
        return aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.username,
            password=server.password,
            use_tls=server.tls == "implicit",
            start_tls=True if server.tls == "starttls" else False if server.tls == "none" else None,
            timeout=server.timeout_s,
        )

    def _take(self) -> list[Row[Any]]:
        now_us = self._clock.now_us()
        due = and_(outbox.c.state.in_(["queued", "sending"]), outbox.c.next_at_us <= now_us)
        with self._database.read() as connection:
            if connection.execute(select(func.count()).select_from(outbox).where(due)).scalar_one() == 0:
                return []
        with self._database.write() as connection:
            found = select(outbox).where(due).order_by(outbox.c.next_at_us).limit(self._server.batch)
            mails = list(connection.execute(found.with_for_update(skip_locked=True)))
            for mail in mails:
                values = {"state": "sending", "attempts": mail.attempts + 1, "next_at_us": now_us + _LEASE_US}
                connection.execute(update(outbox).where(_this(mail)).values(values))
            return mails

    async def _try(self, client: aiosmtplib.SMTP, mail: Row[Any]) -> "Failure | None":
        try:
            message = self.message(mail)
        except (ValueError, KeyError, TypeError):
            return Failure("the stored mail cannot be written as a message", final=True)
        try:
            if not client.is_connected:
                await client.connect()
            refused, _ = await client.send_message(message)
        except aiosmtplib.SMTPRecipientsRefused as error:
            codes = [refusal.code for refusal in error.recipients]
            return Failure(_words(error.recipients[0]), final=all(code >= 500 for code in codes))
        except aiosmtplib.SMTPResponseException as error:
            client.close()
            return Failure(
                _words(error), final=error.code >= 500 and not isinstance(error, aiosmtplib.SMTPAuthenticationError)
            )
        except (aiosmtplib.SMTPException, OSError) as error:
            client.close()
            return Failure(f"the mail server cannot be reached: {type(error).__name__}", final=False)
        if refused:
            names = ", ".join(sorted(refused))
            return Failure(_clean(f"not accepted for {names}"), final=True, partly=True)
        return None

    def message(self, mail: Row[Any]) -> EmailMessage:
        """Make the message of an outbox row; the same bytes on every try.

        Raises:
            ValueError: a header would not be one line.
        """
        payload = json.loads(mail.payload)
        made = EmailMessage(policy=WIRE)
        made["From"] = self._server.sender
        made["To"] = ", ".join(payload["to"])
        made["Subject"] = payload["subject"]
        made["Date"] = format_datetime(from_us(mail.created_us))
        made["Message-ID"] = mail.message_id
        made["Auto-Submitted"] = "auto-generated"  # RFC 3834: no vacation replies
        if payload["replyTo"]:
            made["Reply-To"] = payload["replyTo"]
        # Quoted-printable: lines stay short and no byte of a body can end the message.
        if payload["text"] is not None:
            made.set_content(payload["text"], cte="quoted-printable")
        if payload["html"] is not None:
            add = made.set_content if payload["text"] is None else made.add_alternative
            add(payload["html"], subtype="html", cte="quoted-printable")
        return made

    def _mark(self, mail: Row[Any], failure: "Failure | None") -> None:
        now_us, tried = self._clock.now_us(), mail.attempts + 1
        values: dict[str, Any]
        if failure is None or failure.partly:
            values = {"state": "sent", "sent_us": now_us, "next_at_us": None, "last_error": failure and failure.text}
        elif failure.final or tried >= self._server.tries:
            values = {"state": "failed", "next_at_us": None, "last_error": failure.text}
        else:
            pause = min(self._server.pause_s * 2 ** (tried - 1), self._server.longest_pause_s)
            values = {"state": "queued", "next_at_us": now_us + int(pause * 1_000_000), "last_error": failure.text}
        mine = and_(_this(mail), outbox.c.state == "sending", outbox.c.attempts == tried)
        with self._database.write() as connection:
            connection.execute(update(outbox).where(mine).values(values))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a mail was not taken. ``final``: trying again cannot help; ``partly``: some recipients have it."""

    text: str
    final: bool
    partly: bool = False


def _this(mail: Row[Any]) -> Any:  # noqa: ANN401 - an SQL condition
    return and_(outbox.c.tenant_id == mail.tenant_id, outbox.c.id == mail.id)


def _words(error: Any) -> str:  # noqa: ANN401 - two classes of the client
    return _clean(f"{error.code} {error.message}")


def _clean(text: str) -> str:
    return _CONTROL.sub(" ", text)[:500]
