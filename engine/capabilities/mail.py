"""Host side of ``mail``: a mail is validated at the call, enters the journal, and is sent after the commit."""

import re
from base64 import b64encode
from typing import Any

from lodger.engine.capabilities.arguments import MAX_ADDRESSES
from lodger.engine.capabilities.secrets import holds_handle
from lodger.engine.capabilities.session import Session
from lodger.engine.core import strict_json
from lodger.engine.core.access.origins import with_ascii_domain
from lodger.engine.core.refusal import CallRefused, bad_request, denied
from lodger.engine.effects.effect import Attachment, Mail

MAX_SUBJECT = 500
MAX_BODY = 256 * 1024
MAX_NAME = 100
MAX_ATTACHMENTS = 10
#: Bytes of all attachments of a mail.
MAX_ATTACHED = 512 * 1024
#: An address in its plain form: no display name, no comment, no space, one @, a domain of plain labels.
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?", re.ASCII)
#: An address with a name, which is quoted if it holds anything that separates addresses.
_NAMED = re.compile(r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^"<>@,;:\\()]*?))\s*<(?P<address>[^<>]*)>')
#: Encoded words of RFC 2047, which mail programs decode. Python's email package decodes them too, which could inject
#: header lines.
_ENCODED = re.compile(r"=\?[^?\s]*\?[^?\s]*\?")
#: Control characters that end a header line: C0, C1, and separators that some software treats as line ends.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

#: A file name that no system takes for a path, and no mail program for several parameters.
_FILE = re.compile(r'(?!\.)[^\x00-\x1f\x7f-\x9f\u2028\u2029"\\/:*?<>|;]{1,100}')
_TYPE = re.compile(
    r"((?:application|audio|font|image|text|video)/[a-z0-9][a-z0-9.+-]{0,60})(?:\s*;\s*charset=\"?([a-z0-9][a-z0-9._-]{0,40})\"?)?",
    re.ASCII | re.IGNORECASE,
)


def checked_address(text: str) -> str:
    """Return an address if it is valid, with the domain in ASCII: ``a@müller.example`` is ``a@xn--mller-kva.example``.

    Raises:
        CallRefused: ``bad_address``.
    """
    local, at, domain = text.partition("@")
    if not local.isascii():
        raise CallRefused(
            "bad_address",
            f"the part of an address before the @ is ASCII, unlike {local[:64]!r}: servers do not deliver others",
        )
    try:
        text = with_ascii_domain(text)
    except ValueError:
        raise CallRefused("bad_address", f"{domain[:100]!r} is no domain name") from None
    domain = text.partition("@")[2]
    good = at and "=?" not in text and len(text) <= 254 and len(local) <= 64 and _LOCAL.fullmatch(local)
    if not good or not all(_LABEL.fullmatch(label) for label in domain.split(".")):
        raise CallRefused(
            "bad_address",
            "an address must have the form name@example.com or Ann Example <name@example.com>; several are a list",
        )
    return text


def _named_address(text: str, names: dict[str, str]) -> str:
    """Return the address of ``Name <address>`` or a bare one, and put the name, if there is one, into ``names``."""
    found = _NAMED.fullmatch(text.strip())
    if found is None:
        return checked_address(text)
    address = checked_address(found["address"])
    name = found["bare"] if found["quoted"] is None else re.sub(r"\\(.)", r"\1", found["quoted"])
    if name:
        names[address] = _one_line(name, "the name beside an address", MAX_NAME)
    return address


def _one_line(text: str, what: str, limit: int) -> str:
    """Return a text that can be part of a mail's header: one line, within its length; refuse others."""
    if _CONTROL.search(text) or len(text) > limit:
        raise bad_request(f"{what} must be one line of at most {limit} characters")
    if _ENCODED.search(text):
        raise bad_request(f"{what} must be plain text without encoded words (=?…?=)")
    return text


def _attachment(given: dict[str, Any]) -> Attachment:
    """Return an attachment, checked."""
    unknown = sorted(given.keys() - {"name", "content", "type"})
    if unknown:
        raise bad_request(f"an attachment has name, content and type, and no {unknown[0][:40]!r}")
    name, content, kind = given.get("name"), given.get("content"), given.get("type")
    if not isinstance(name, str) or not _FILE.fullmatch(name) or _ENCODED.search(name):
        raise bad_request("the name of an attachment must be a file name of at most 100 characters, without a path")
    data = content.encode() if isinstance(content, str) else strict_json.read_bytes(content)
    if kind is None:
        kind = "text/plain" if isinstance(content, str) else "application/octet-stream"
    found = _TYPE.fullmatch(kind) if isinstance(kind, str) else None
    if found is None:
        raise bad_request("the type of an attachment must be a media type such as text/csv or text/csv; charset=utf-8")
    kind, charset = found[1].lower(), (found[2] or "").lower()
    if isinstance(content, str) and kind.startswith("text/"):
        if charset not in ("", "utf-8", "utf8"):
            raise bad_request(
                f"the text of an attachment is sent as UTF-8, not as {charset}; give bytes for another charset"
            )
        charset = "utf-8"
    kind += f"; charset={charset}" if charset else ""
    return Attachment(name, kind, b64encode(data).decode())


async def send(session: Session, given: dict[str, Any]) -> dict[str, str]:
    """Handle mail.send: the mail enters the journal, and is sent after the commit."""
    names: dict[str, str] = {}
    to, cc, bcc = (
        tuple(dict.fromkeys(_named_address(item, names) for item in given[name] or ())) for name in ("to", "cc", "bcc")
    )
    recipients = tuple(dict.fromkeys((*to, *cc, *bcc)))
    reply_to = None if given["replyTo"] is None else _named_address(given["replyTo"], names)
    subject = _one_line(given["subject"], "a subject", MAX_SUBJECT)
    name = None if given["senderName"] is None else _one_line(given["senderName"], "senderName", MAX_NAME)
    if len(recipients) > MAX_ADDRESSES:
        raise bad_request(f"a mail has at most {MAX_ADDRESSES} recipients, those of cc and bcc included")
    attachments = tuple(_attachment(each) for each in given["attachments"] or ())
    if len(attachments) > MAX_ATTACHMENTS or sum(len(each.base64) for each in attachments) > MAX_ATTACHED * 4 // 3 + 40:
        raise bad_request(f"a mail has at most {MAX_ATTACHMENTS} attachments, with {MAX_ATTACHED} bytes in all")
    if given["text"] is None and given["html"] is None:
        raise bad_request("a mail needs text or html")
    if len((given["text"] or "").encode()) + len((given["html"] or "").encode()) > MAX_BODY:
        raise bad_request(f"a mail has at most {MAX_BODY} bytes")
    files = [each["content"] for each in given["attachments"] or () if isinstance(each["content"], str)]
    if any(map(holds_handle, (subject, name or "", given["text"] or "", given["html"] or "", *files))):
        raise bad_request("a mail cannot hold the handle of a secret: handles are replaced in requests of fetch only")
    await _allowed(session, (*recipients, *(() if reply_to is None else (reply_to,))))
    session.budgets.spend("mails", len(recipients))
    message_id = session.journal.message_id()
    session.journal.add(
        Mail(
            to, subject, given["text"], given["html"], reply_to, cc, bcc, name, attachments,
            message_id=message_id, names=names, line=given["line"],
        )
    )  # fmt: skip
    return {"messageId": message_id}


async def _allowed(session: Session, addresses: tuple[str, ...]) -> None:
    """Raise unless every recipient and reply address is granted or one of the tenant's own people."""
    grants = session.claim.grants
    unnamed = [address for address in addresses if not grants.of_mail(address, own=False)]
    asked = [address for address in unnamed if grants.of_mail(address, own=True)]
    own = await session.people(session.claim.tenant_id, asked) if asked else ()
    if any(address not in own for address in unnamed):
        raise denied(
            "mail to this address is not allowed: it must be one of the tenant's people, or granted with mail:ADDRESS"
        )


HANDLERS = {"mail.send": send}
