"""Host side of ``secrets``: placeholders in requests are replaced when they are sent; plain values need their own grant.

A placeholder is text: ``{{secret:NAME}}`` stands for the value, ``{{basic:USER:NAME}}`` for the Basic credentials of a
user and the value. It has a meaning in the path and query, the headers and the body of a request.
"""

import base64
import json
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from html import escape
from typing import Any
from urllib.parse import quote, unquote_plus

from lodger.engine.capabilities.permits import missing_grant
from lodger.engine.capabilities.session import Session
from lodger.engine.core.access.origins import Origin
from lodger.engine.core.execution import Answer
from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.engine.egress.headers import Headers
from lodger.engine.egress.request_errors import SecretRefused
from lodger.engine.egress.target import Target
from lodger.engine.store.tenants.secrets import OpenSecret
from lodger.engine.vault.redaction import Redactor

#: Maximum total size of values in a request, estimated generously.
MAX_FILLED = 64 * 1024
_HANDLE = re.compile(
    r"\{\{(?:secret:|basic:(?P<user>[^{}:]{0,128}):)(?P<name>[A-Za-z][A-Za-z0-9_]{0,62})\}\}"
    # As URL and URLSearchParams write it.
    r"|%7[Bb]%7[Bb](?:secret(?::|%3[Aa])|basic(?::|%3[Aa])(?P<quoted_user>[^{}:&=]{0,384}?)(?::|%3[Aa]))"
    r"(?P<quoted_name>[A-Za-z][A-Za-z0-9_]{0,62})%7[Dd]%7[Dd]",
    re.ASCII,
)
#: Parts of every base64 text that encodes the beginning of a placeholder, at each of three places of a group.
_BASE64 = tuple(
    base64.b64encode(b"\0" * before + beginning)[-(-before * 8 // 6) : (before + len(beginning)) * 8 // 6].decode()
    for beginning in (b"{{secret:", b"{{basic:")
    for before in range(3)
)


def holds_handle(text: str) -> bool:
    """Whether a text holds a placeholder of a secret."""
    return _HANDLE.search(text) is not None


def _name(match: re.Match[str]) -> str:
    """Return the name of the secret in a placeholder."""
    name: str = match["name"] or match["quoted_name"]
    return name


def _text(body: bytes) -> str:
    """Return bytes as text from which the same bytes can be made again."""
    return body.decode("utf-8", "surrogateescape")


def _percent(value: str) -> str:
    """Return a value encoded for a URL."""
    return quote(value, safe="")


def _encoding(kind: str, text: str) -> Callable[[str], str]:
    """Return the function that encodes a secret's value for a body of this content type."""
    if kind == "application/x-www-form-urlencoded":
        return _percent
    if kind == "application/json" or kind.endswith("+json") or text.lstrip()[:1] in ("{", "["):
        return lambda value: json.dumps(value, ensure_ascii=False)[1:-1]
    if kind.endswith(("/xml", "+xml")):
        return escape
    return str


async def withheld_secrets(_names: Collection[str]) -> dict[str, OpenSecret]:
    """Refuse: an offline dry run may run a source of a caller that may not see secrets.

    Raises:
        CallRefused: ``offline``.
    """
    raise CallRefused("offline", "this dry run gets no secrets")


async def read(session: Session, given: dict[str, Any]) -> str:
    """Handle secrets.read, the only call that returns a secret's value to a script."""
    name = given["name"]
    if not session.claim.grants.of_secret(name, plain=True):
        raise missing_grant(f"secret:{name}:plain")
    found = await session.read_secrets([name])
    if name not in found:
        raise _unknown(name)
    value = found[name].value
    session.redactor.add(name, value)
    return value


class SecretHandles:
    """The placeholders in the URL, the headers and the body of one request.

    Args:
        url, headers, body: from the script.
    """

    def __init__(self, url: str, headers: Headers, body: bytes) -> None:
        texts = (url, *(value for _, value in headers), _text(body))
        self._found = [match for text in texts for match in _HANDLE.finditer(text)]
        self.names = {_name(match) for match in self._found}
        self._encoded = any(part in text for text in texts for part in _BASE64)
        self._known: dict[str, OpenSecret] = {}

    async def look_up(self, session: Session) -> None:
        """Read the values of the secrets.

        Raises:
            CallRefused: ``denied`` without the grant, ``secret_unknown`` for a missing secret, ``bad_request`` for a
                placeholder in base64, ``bad_header`` if the request would be too long with the values.
        """
        if self._encoded:
            raise bad_request(
                "the request holds the handle of a secret in base64, where the value cannot be put in: "
                "write secrets.basic(user, NAME) for Basic credentials, or read the value with await secrets.read(NAME)"
            )
        for name in sorted(self.names):
            if not session.claim.grants.of_secret(name):
                raise missing_grant(f"secret:{name}")
        if session.fetch_state.offline or not self.names:
            return
        self._known = await session.read_secrets(self.names)
        for name in sorted(self.names - set(self._known)):
            raise _unknown(name)
        # A placeholder is short, its value may be long.
        if sum(3 * (len(self._known[_name(match)].value) + len(match[0])) for match in self._found) > MAX_FILLED:
            raise CallRefused(
                "bad_header", f"with the values of secrets, the request is longer by more than {MAX_FILLED} characters"
            )

    def fill(self, target: Target, headers: Headers, body: bytes) -> tuple[Target, Headers, bytes]:
        """Replace the placeholders by values, encoded for their place, for one origin.

        Raises:
            SecretRefused: a secret is bound to other origins.
        """
        if not self.names:
            return target, headers, body
        origin = target.origin
        path = self._filled(target.path, origin, _percent)
        filled = tuple((name, self._filled(value, origin, str)) for name, value in headers)
        text = _text(body)
        if _HANDLE.search(text):
            kind = (
                next((value for name, value in headers if name == "content-type"), "").partition(";")[0].strip().lower()
            )
            body = self._filled(text, origin, _encoding(kind, text)).encode("utf-8", "surrogateescape")
        return replace(target, path=path), filled, body

    def _filled(self, text: str, origin: Origin, encode: Callable[[str], str]) -> str:
        """Return a text with the values of secrets in place of their placeholders; ``encode`` writes a value for its place."""
        return _HANDLE.sub(lambda match: self._value(match, origin, encode), text)

    def _value(self, match: re.Match[str], origin: Origin, encode: Callable[[str], str]) -> str:
        """Return the value for a placeholder, encoded; raises SecretRefused if the secret may not be sent to this origin."""
        known = self._known[_name(match)]
        if not any(host.covers(origin) for host in known.hosts):
            raise SecretRefused(known.name, known.hosts, origin)
        value, quoted = known.value, match["name"] is None
        user = match["quoted_user"] if quoted else match["user"]
        if user is not None:
            value = base64.b64encode(f"{unquote_plus(user) if quoted else user}:{value}".encode()).decode()
        return _percent(value) if quoted else encode(value)

    def redacted(self, answer: Answer) -> Answer:
        """Return the response without the values of secrets, which a host could repeat."""
        if not self._known:
            return answer
        redactor, of_names = Redactor(), Redactor()
        for known in self._known.values():
            redactor.add(known.name, known.value)
            of_names.add(known.name, known.value.lower())  # header names are in lower case
        headers = tuple((of_names.text(name), redactor.text(value)) for name, value in answer.headers)
        return Answer(
            answer.status, redactor.text(answer.reason), redactor.text(answer.url), headers, redactor.bytes(answer.body),
            answer.redirected, answer.sent_bytes, answer.received_bytes,
        )  # fmt: skip


def _unknown(name: str) -> CallRefused:
    """Return the refusal of a secret that does not exist."""
    return CallRefused("secret_unknown", f"there is no secret with the name {name}")


HANDLERS = {"secrets.read": read}
