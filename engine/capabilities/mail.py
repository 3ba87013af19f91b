"""Host side of ``mail``: a mail is validated at the call, enters the journal, and is sent after the commit."""

import re
from typing import Any

from lodger.engine.capabilities.session import Session
from lodger.engine.core.refusal import bad_request, denied
from lodger.engine.effects.effect import Mail

MAX_SUBJECT = 500
MAX_BODY = 256 * 1024
#: An address in its plain form: no display name, no comment, no space, one @, a domain of plain labels.
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?", re.ASCII)
#: Encoded words of RFC 2047, which mail programs decode. Python's email package decodes them too, which could inject
#: header lines.
_ENCODED = re.compile(r"=\?[^?\s]*\?[^?\s]*\?")
#: Control characters that end a header line: C0, C1, and separators that some software treats as line ends.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def checked_address(text: str) -> str:
    """Return an address if it is valid.

    Raises:
        CallRefused: ``bad_address``.
    """
    local, at, domain = text.partition("@")
    labels = domain.split(".")
    good = (
        bool(at) and "=?" not in text and len(text) <= 254 and len(local) <= 64 and _LOCAL.fullmatch(local) is not None
    )
    if not good or not all(_LABEL.fullmatch(label) for label in labels):
        refused = bad_request("an address must have the form name@example.com, without a display name")
        refused.code = "bad_address"
        raise refused
    return text


async def send(session: Session, given: dict[str, Any]) -> dict[str, str]:
    """Handle mail.send."""
    to = tuple(dict.fromkeys(checked_address(item) for item in given["to"]))
    reply_to = None if given["replyTo"] is None else checked_address(given["replyTo"])
    subject = given["subject"]
    if _CONTROL.search(subject) or len(subject) > MAX_SUBJECT:
        raise bad_request(f"a subject must be one line of at most {MAX_SUBJECT} characters")
    if _ENCODED.search(subject):
        raise bad_request("a subject must be plain text without encoded words (=?…?=)")
    if given["text"] is None and given["html"] is None:
        raise bad_request("a mail needs text or html")
    if len((given["text"] or "").encode()) + len((given["html"] or "").encode()) > MAX_BODY:
        raise bad_request(f"a mail has at most {MAX_BODY} bytes")
    await _allowed(session, (*to, *(() if reply_to is None else (reply_to,))))
    session.budgets.spend("mails", len(to))
    message_id = session.journal.message_id()
    session.journal.send(
        Mail(to, subject, given["text"], given["html"], reply_to, message_id=message_id, line=given["line"])
    )
    return {"messageId": message_id}


async def _allowed(session: Session, addresses: tuple[str, ...]) -> None:
    """Refuse recipients and reply addresses that are neither granted nor addresses of the tenant's own people."""
    grants = session.grants
    unnamed = [address for address in addresses if not grants.of_mail(address, own=False)]
    asked = [address for address in unnamed if grants.of_mail(address, own=True)]
    own = await session.own_addresses(session.tenant_id, asked) if asked else ()
    if any(address not in own for address in unnamed):
        raise denied(
            "mail to this address is not allowed: it must be one of the tenant's people, or granted with mail:ADDRESS"
        )


HANDLERS = {"mail.send": send}
