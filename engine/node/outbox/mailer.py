"""Sends mails of the outbox: at least once on the wire, always under the same Message-ID.

A server's temporary refusal and every failure to reach it put a mail back with a growing pause; a permanent refusal or too many tries
fail it, with the server's words, which the action shows.
"""

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.header import Header
from email.headerregistry import Address, BaseHeader, HeaderRegistry, UniqueAddressHeader, UniqueUnstructuredHeader
from email.message import EmailMessage
from email.policy import SMTP, Policy
from email.utils import format_datetime, formataddr, parseaddr
from typing import Any, ClassVar

import aiosmtplib
from sqlalchemy import Row

from lodger.engine.core.clock import Clock, from_us
from lodger.engine.node.outbox.sender import Sender
from lodger.engine.store.connection.database import Database
from lodger.engine.store.queue.outbox import Failure, RetryPolicy

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
#: Headers of every mail, and further ones that it may have: a mail whose texts add any other header fails.
_HEAD = frozenset({"from", "to", "subject", "date", "message-id", "auto-submitted", "mime-version", "content-type"})
_PERHAPS = frozenset({"reply-to", "cc", "content-transfer-encoding"})


def _encoded(text: str, linesep: str) -> str:
    """Return a text as words of a header, in lines: as it is, or encoded (RFC 2047) if it could be read as something else.

    Raises:
        ValueError: it is not one line.
    """
    if _CONTROL.search(text):
        raise ValueError("a text of a header must be one line")
    plain = text.isascii() and text == text.strip() and "=?" not in text
    return Header(text, "us-ascii" if plain else "utf-8", header_name="Subject").encode(linesep=linesep)


class _Addresses(UniqueAddressHeader, BaseHeader):  # type: ignore[misc]  # typeshed: max_count of both
    """A header of addresses. Python 3.11 folds a long name without its quotes, so that parts of it become addresses."""

    def fold(self, *, policy: Policy) -> str:
        """Return the header in lines, one for each address."""
        written = (
            formataddr((each.display_name, each.addr_spec))
            if each.display_name.isascii() and "=?" not in each.display_name
            else f"{_encoded(each.display_name, policy.linesep)} <{each.addr_spec}>"
            for each in self.addresses
        )
        return f"{self.name}: {f',{policy.linesep} '.join(written)}{policy.linesep}"


class _Subject(UniqueUnstructuredHeader, BaseHeader):  # type: ignore[misc]  # typeshed: max_count of both
    """A subject. Python 3.11 loses spaces where it folds encoded words."""

    def fold(self, *, policy: Policy) -> str:
        """Return the header in lines."""
        return f"{self.name}: {_encoded(str(self), policy.linesep)}{policy.linesep}"


_HEADERS = HeaderRegistry()
for _name in ("from", "to", "cc", "reply-to"):
    _HEADERS.map_to_type(_name, _Addresses)
_HEADERS.map_to_type("subject", _Subject)
WIRE = SMTP.clone(header_factory=_HEADERS)


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


class Mailer(Sender):
    """The service that sends mails; tenants take turns, a few mails each.

    Args:
        database: the ledger's.
        server: where mails go.
        clock: for leases and pauses.
    """

    name: ClassVar[str] = "mail"
    effect: ClassVar[str] = "mail"
    lanes: ClassVar[int] = 4
    each: ClassVar[int] = 10

    def __init__(self, database: Database, server: MailServer, clock: Clock) -> None:
        super().__init__(database, clock)
        self._server = server
        self.patience = RetryPolicy(server.tries, server.pause_s, server.longest_pause_s)

    async def deliver(self, rows: list[Row[Any]]) -> None:
        """Send one tenant's mails over one connection."""
        client = self._client()
        try:
            for mail in rows:
                await self.mark(mail, await self._try(client, mail))
        finally:
            client.close()

    def _client(self) -> aiosmtplib.SMTP:
        """Return a new connection to the mail server, not yet opened."""
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

    async def _try(self, client: aiosmtplib.SMTP, mail: Row[Any]) -> Failure | None:
        """Send a mail; return the failure, None if the server took it."""
        try:
            message = self.message(mail)
        except (ValueError, KeyError, TypeError, LookupError):
            return Failure("the stored mail cannot be written as a message", final=True)
        try:
            if not client.is_connected:
                await client.connect()
            refused, _ = await client.send_message(message, recipients=recipients(json.loads(mail.payload)))
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
            return Failure(_clean(f"the mail server did not accept the recipients {names}"), final=True, partly=True)
        return None

    def message(self, mail: Row[Any]) -> EmailMessage:
        """Make the message of an outbox row; the same content on every try.

        Raises:
            ValueError: a header would not be one line, or would be more than one header.
        """
        payload = json.loads(mail.payload)
        made = EmailMessage(policy=WIRE)
        name = payload.get("senderName")
        made["From"] = Address(name, addr_spec=parseaddr(self._server.sender)[1]) if name else self._server.sender
        names = payload.get("names", {})
        made["To"] = _written(payload["to"], names)
        if payload.get("cc"):
            made["Cc"] = _written(payload["cc"], names)
        made["Subject"] = payload["subject"]
        made["Date"] = format_datetime(from_us(mail.created_us))
        made["Message-ID"] = mail.message_id
        made["Auto-Submitted"] = "auto-generated"  # RFC 3834: no vacation replies
        if payload.get("replyTo"):
            made["Reply-To"] = _written([payload["replyTo"]], names)
        # Quoted-printable: lines stay short and no byte of a body can end the message.
        if payload["text"] is not None:
            made.set_content(payload["text"], cte="quoted-printable")
        if payload.get("html") is not None:
            add = made.set_content if payload["text"] is None else made.add_alternative
            add(payload["html"], subtype="html", cte="quoted-printable")
        for file in payload.get("attachments", ()):
            media, _, charset = file["type"].partition("; charset=")
            kind, _, subtype = media.partition("/")
            params = {"charset": charset} if charset else {}
            made.add_attachment(
                b64decode(file["base64"]), kind, subtype, cte="base64", filename=file["name"], params=params
            )
        _require_plain(made)
        return made


def _written(addresses: list[str], names: Mapping[str, str]) -> list[Address]:
    """Return mail addresses with their display names."""
    return [Address(names.get(each, ""), addr_spec=each) for each in addresses]


def recipients(payload: dict[str, Any]) -> list[str]:
    """Return each address that a stored mail goes to, those of cc and bcc included, once."""
    return list(dict.fromkeys([*payload["to"], *payload.get("cc", ()), *payload.get("bcc", ())]))


def _require_plain(message: EmailMessage) -> None:
    """Raise ValueError unless the encoded head has the expected headers, once each: Python may turn encoded words into a line of their
    own."""
    head = message.as_bytes().partition(b"\r\n\r\n")[0]
    names = [
        line.partition(b":")[0].decode("ascii", "replace").lower()
        for line in head.split(b"\r\n")
        if line[:1] not in b" \t"
    ]
    bare = head.replace(b"\r\n", b"")
    if b"\r" in bare or b"\n" in bare or len(names) != len(set(names)) or not _HEAD <= set(names) <= _HEAD | _PERHAPS:
        raise ValueError("a header of this mail has more than one line")
    if any(_CONTROL.search(part.get_filename() or "") for part in message.iter_attachments()):
        raise ValueError("a file name of this mail has more than one line")


def _words(error: Any) -> str:
    """Return code and text of a mail server's error."""
    return _clean(f"{error.code} {error.message}")


def _clean(text: str) -> str:
    """Return the beginning of a text without control characters."""
    return _CONTROL.sub(" ", text)[:500]
