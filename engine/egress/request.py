"""Requests to hosts and their options."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from lodger.engine.core.access.origins import Origin
from lodger.engine.egress.headers import Headers

#: Decoded bytes of an answer, and letters of its headers.
MAX_BODY = 2 * 1024 * 1024
MAX_HEADERS = 64 * 1024
#: Redirects of one request, and seconds for all of it: waiting, names, connections, answers.
MAX_HOPS = 5
TOTAL_S = 10.0


class Redirect(Enum):
    """How redirects are handled: followed, an error, or returned as the response."""

    FOLLOW = "follow"
    ERROR = "error"
    MANUAL = "manual"


def anywhere(_origin: Origin) -> bool:
    """Allow every host; its addresses are checked nevertheless."""
    return True


def as_written(_origin: Origin, headers: Headers) -> Headers:
    """Return headers unchanged."""
    return headers


@dataclass(slots=True)
class Moved:
    """Bytes that a request has sent and received so far; written by its thread, read after it was abandoned."""

    so_far: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        url: canonical (:mod:`lodger.engine.egress.target`).
        headers: checked; names in lower case.
        allowed: whether a request may go to an origin; asked again at every redirect.
        filled: returns the headers for an origin with secrets filled in; raises Refused if one may not be sent there.
        payer: key under which the rate limit counts requests together.
        moved: bytes sent and received, for a request that was abandoned.
    """

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""
    redirect: Redirect = Redirect.FOLLOW
    allowed: Callable[[Origin], bool] = anywhere
    filled: Callable[[Origin, Headers], Headers] = as_written
    payer: str = ""
    total_s: float = TOTAL_S
    max_body: int = MAX_BODY
    moved: Moved = field(default_factory=Moved, compare=False)
