"""Requests to hosts and their options."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from lodger.engine.core.access.grants import FETCH_DEFAULT
from lodger.engine.core.access.origins import Origin
from lodger.engine.egress.headers import Headers
from lodger.engine.egress.target import Target

#: Characters of an answer's headers.
MAX_HEADERS = 64 * 1024
#: Redirects of one request.
MAX_HOPS = 5


class Redirect(Enum):
    """How redirects are handled: followed, an error, or returned as the response."""

    FOLLOW = "follow"
    ERROR = "error"
    MANUAL = "manual"


def anywhere(_origin: Origin) -> bool:
    """Allow every host; its addresses are checked nevertheless."""
    return True


def as_written(target: Target, headers: Headers, body: bytes) -> tuple[Target, Headers, bytes]:
    """Return target, headers and body of a request unchanged: nothing is to be filled in."""
    return target, headers, body


@dataclass(slots=True)
class Moved:
    """Bytes that a request has sent and received so far; written by its thread, read after it has failed or was abandoned."""

    sent: int = 0
    received: int = 0

    @property
    def so_far(self) -> int:
        """Both together."""
        return self.sent + self.received


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        url: canonical (:mod:`lodger.engine.egress.target`).
        headers: checked; names in lower case.
        allowed: whether a request may go to an origin; asked again at every redirect.
        filled: returns target, headers and body with secrets filled in; raises Refused if one may not be sent there.
        payer: key under which the rate limit counts requests together.
        total_s: time for all of it: waiting, names, connections, answers.
        max_body: decoded bytes of the answer.
        late: the script's sentence when ``total_s`` is over.
        trusted: whether the operator has declared the destination, which may then be a private address; never for a script's URL.
        moved: bytes sent and received.
    """

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""
    redirect: Redirect = Redirect.FOLLOW
    allowed: Callable[[Origin], bool] = anywhere
    filled: Callable[[Target, Headers, bytes], tuple[Target, Headers, bytes]] = as_written
    payer: str = ""
    total_s: float = FETCH_DEFAULT.total_s
    max_body: int = FETCH_DEFAULT.body_bytes
    late: str = ""
    trusted: bool = False
    moved: Moved = field(default_factory=Moved, compare=False)
