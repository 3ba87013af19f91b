"""Content of a ping: a script that is one HTTP request, stored as one JSON file and versioned like any script.

Its destination is not checked here but at each request, because grants may change later.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lodger.engine.core.errors import InputError
from lodger.engine.core.refusal import CallRefused
from lodger.engine.egress import target
from lodger.engine.egress.headers import METHODS, checked
from lodger.engine.egress.request_errors import Refused
from lodger.engine.store.records import Json
from lodger.engine.store.scripts.content import Content
from lodger.sandbox.limits import Limits

FILE = "ping.json"
KIND = "ping"
_STATUS = re.compile(r"[1-5](xx|[0-9]{2})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Ping:
    """The HTTP request of a ping.

    Attributes:
        body: text, or a JSON value; None for the default body.
        expect: statuses that are a success, such as ``2xx 304``.
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json = None
    expect: str = "2xx"

    def expects(self, status: int) -> bool:
        """Whether a response with this status is a success."""
        return any(each == str(status) or each == f"{status // 100}xx" for each in self.expect.split())


def read(url: str, method: str, headers: Mapping[str, str] | None, body: Json, expect: str, limits: Limits) -> Content:
    """Check the parts of a ping and return its content.

    Raises:
        InputError: ping_invalid, source_too_large.
    """
    method = method.upper() if isinstance(method, str) else ""
    if method not in METHODS:
        raise InputError("ping_invalid.method", method=method, methods=METHODS)
    if body is not None and method in ("GET", "HEAD"):
        raise InputError("ping_invalid.no_body", method=method)
    try:
        target.read(url if isinstance(url, str) else "")
    except Refused as refused:
        raise InputError("ping_invalid.url", url=url, reason=refused.reason) from None
    given = dict(headers or {})
    try:
        checked(given.items())
    except (CallRefused, TypeError, AttributeError) as refused:
        raise InputError("ping_invalid.headers", reason=refused) from None
    words = expect.replace(",", " ").split() if isinstance(expect, str) else []
    if not words or not all(map(_STATUS.fullmatch, words)):
        raise InputError("ping_invalid.expect", expect=expect)
    return _content(Ping(url, method, given, body, " ".join(words)), limits)


def _content(ping: Ping, limits: Limits) -> Content:
    """Return a ping in the form in which versions are stored."""
    try:
        text = json.dumps(asdict(ping), ensure_ascii=False, sort_keys=True, allow_nan=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("ping_invalid.body", reason=error) from None
    if "\0" in text or "\\u0000" in text:
        raise InputError("ping_invalid.nul")
    if size > limits.source_bytes:
        raise InputError("source_too_large.ping", size=size, maximum=limits.source_bytes)
    return Content({FILE: text}, None, hashlib.sha256(b"ping\0" + text.encode()).hexdigest(), KIND)


def decode(modules: Mapping[str, str]) -> Ping:
    """Return the ping from a version's files, as :func:`read` has made them."""
    stored: dict[str, Any] = json.loads(modules[FILE])
    return Ping(**stored)
