"""Headers that scripts may send: valid names and values, and none that the client sets itself."""

import re
from collections.abc import Iterable

from lodger.engine.core.refusal import CallRefused

MAX = 64
MAX_BYTES = 16 * 1024
Headers = tuple[tuple[str, str], ...]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
#: Visible ASCII, Latin-1, space and tab inside; never a line's end, NUL, or anything that another reader trims away.
_VALUE = re.compile("(?:[!-~\xa0-\xff](?:[ -~\t\xa0-\xff]*[!-~\xa0-\xff])?)?")
#: What frames the request, names its host, speaks for a proxy or a browser, or asks for what we would have to undo.
FORBIDDEN = frozenset({
    "accept-encoding", "alt-svc", "connection", "content-encoding", "content-length", "expect", "forwarded", "host",
    "http2-settings", "keep-alive", "max-forwards", "origin", "referer", "te", "trailer", "transfer-encoding", "upgrade", "via",
    "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip",
})  # fmt: skip
_FORBIDDEN_BEGINNINGS = ("proxy-", "sec-")
#: What still goes along when a redirect leaves the origin: nothing that could be a credential.
KEPT_ELSEWHERE = frozenset({"accept", "accept-language", "content-type", "user-agent", "range", "cache-control"})
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def checked(given: Iterable[tuple[str, str]]) -> Headers:
    """Return headers with lower-case names, or refuse them.

    Raises:
        CallRefused: ``bad_header``.
    """
    made = tuple((name.lower(), value) for name, value in given)
    for name, value in made:
        if not _NAME.fullmatch(name):
            raise CallRefused("bad_header", "the name of a header has letters, digits and !#$%&'*+.^_`|~-")
        if name in FORBIDDEN or name.startswith(_FORBIDDEN_BEGINNINGS):
            raise CallRefused("bad_header", f"the header {name} cannot be set")
        if not _VALUE.fullmatch(value):
            raise CallRefused("bad_header", f"the value of {name} is not one line of Latin-1 text")
    if len(made) > MAX or sum(len(name) + len(value) for name, value in made) > MAX_BYTES:
        raise CallRefused("bad_header", f"at most {MAX} headers with {MAX_BYTES} characters in total can be sent")
    return made


def is_value(text: str) -> bool:
    """Whether a text can be a header's value."""
    return _VALUE.fullmatch(text) is not None


def for_other_origin(headers: Headers) -> Headers:
    """Return the headers that are also sent to another origin."""
    return tuple((name, value) for name, value in headers if name in KEPT_ELSEWHERE)
