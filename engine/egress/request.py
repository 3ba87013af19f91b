"""What is asked of a host and what comes back."""

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
    """What becomes of an answer that points elsewhere: it is followed, is an error, or is the answer."""

    FOLLOW = "follow"
    ERROR = "error"
    MANUAL = "manual"


def anywhere(_origin: Origin) -> bool:
    """Allow every host; its addresses are judged all the same."""
    return True


def as_written(_origin: Origin, headers: Headers) -> Headers:
    """Send headers as they are."""
    return headers


@dataclass(slots=True)
class Moved:
    """Bytes that a request has moved so far; its thread writes, whoever gives it up reads."""

    so_far: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        url: canonical (:mod:`lodger.engine.egress.target`).
        headers: checked; names in lower case.
        allowed: whether a request may go to an origin; asked again at every redirect.
        filled: gives the headers as they are sent to an origin, secrets put in; raises Refused where one may not go.
        payer: whose requests are counted together by the pace.
        moved: tells what it moved when nobody waits for its answer any more.
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
