"""Host side of ``secrets``: placeholders in headers are replaced when a request is sent; plain values need their own grant.

A placeholder is text: ``{{secret:NAME}}`` stands for the value, ``{{basic:USER:NAME}}`` for the Basic credentials of a
user and the value. It has a meaning only in the headers of a request.
"""

import base64
import re
from collections.abc import Collection
from typing import Any

from lodger.engine.capabilities.permits import missing_grant
from lodger.engine.capabilities.session import Session
from lodger.engine.core.access.origins import Origin
from lodger.engine.core.execution import Answer
from lodger.engine.core.refusal import CallRefused
from lodger.engine.egress.headers import Headers
from lodger.engine.egress.request_errors import SecretRefused
from lodger.engine.store.tenants.secrets import OpenSecret
from lodger.engine.vault.redaction import Redactor

#: Maximum total size of values in the headers of a request, estimated generously.
MAX_FILLED = 64 * 1024
_HANDLE = re.compile(r"\{\{(?:secret:|basic:([^{}:]{0,128}):)([A-Za-z][A-Za-z0-9_]{0,62})\}\}", re.ASCII)


async def no_secrets(_names: Collection[str]) -> dict[str, OpenSecret]:
    """Return no secrets."""
    return {}


async def withheld_secrets(_names: Collection[str]) -> dict[str, OpenSecret]:
    """Refuse: an offline dry run may run a source of a caller that may not see secrets.

    Raises:
        CallRefused: ``offline``.
    """
    raise CallRefused("offline", "this dry run gets no secrets")


async def read(session: Session, given: dict[str, Any]) -> str:
    """Handle secrets.read, the only call that returns a secret's value to a script."""
    name = given["name"]
    if not session.grants.of_secret(name, plain=True):
        raise missing_grant(f"secret:{name}:plain")
    found = await session.read_secrets([name])
    if name not in found:
        raise _unknown(name)
    value = found[name].value
    session.redactor.add(name, value)
    return value


class SecretHandles:
    """The placeholders in the headers of one request.

    Args:
        headers: headers from the script.
    """

    def __init__(self, headers: Headers) -> None:
        self._headers = headers
        self.names = {match[2] for _, value in headers for match in _HANDLE.finditer(value)}
        self._known: dict[str, OpenSecret] = {}

    async def look_up(self, session: Session) -> None:
        """Read the values of the secrets.

        Raises:
            CallRefused: ``denied`` without the grant, ``secret_unknown`` for a missing secret, ``bad_header`` if the
                headers would be too long with the values.
        """
        for name in sorted(self.names):
            if not session.grants.of_secret(name):
                raise missing_grant(f"secret:{name}")
        if session.fetch_state.offline or not self.names:
            return
        self._known = await session.read_secrets(self.names)
        for name in sorted(self.names - set(self._known)):
            raise _unknown(name)
        # A placeholder is short, its value may be long.
        asked = (match for _, value in self._headers for match in _HANDLE.finditer(value))
        if sum(2 * len(self._known[match[2]].value) + 3 * len(match[0]) for match in asked) > MAX_FILLED:
            raise CallRefused(
                "bad_header", f"with the values of secrets, the headers are longer than {MAX_FILLED} characters"
            )

    def fill(self, origin: Origin, headers: Headers) -> Headers:
        """Replace the placeholders by values, for one origin.

        Raises:
            SecretRefused: a secret is bound to other origins.
        """
        if not self.names:
            return headers
        return tuple((name, _HANDLE.sub(lambda match: self._value(match, origin), value)) for name, value in headers)

    def _value(self, match: re.Match[str], origin: Origin) -> str:
        known = self._known[match[2]]
        if not any(host.covers(origin) for host in known.hosts):
            raise SecretRefused(known.name, known.hosts, origin)
        if match[1] is None:
            return known.value
        return base64.b64encode(f"{match[1]}:{known.value}".encode()).decode()

    def redacted(self, answer: Answer) -> Answer:
        """Return the response without the values, which a host could repeat."""
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
    return CallRefused("secret_unknown", f"there is no secret with the name {name}")


HANDLERS = {"secrets.read": read}
