"""Host side of ``secrets``: handles in headers are replaced where a request leaves; a plain value is given by grant alone.

A handle is text: ``{{secret:NAME}}`` stands for the value, ``{{basic:USER:NAME}}`` for what HTTP's Basic scheme makes of a user and
the value. It means something in the headers of a request and nowhere else, so a script that writes it by hand gains nothing.
"""

import base64
import re
from collections.abc import Collection
from typing import Any

from lodger.engine.capabilities.permits import lacking
from lodger.engine.capabilities.session import Session
from lodger.engine.core.access.origins import Origin
from lodger.engine.core.execution import Answer
from lodger.engine.core.refusal import CallRefused
from lodger.engine.egress.headers import Headers
from lodger.engine.egress.request_errors import SecretRefused
from lodger.engine.store.tenants.secrets import Opened
from lodger.engine.vault.redaction import Redactor

#: Letters that values may take in the headers of a request, reckoned generously.
MAX_FILLED = 64 * 1024
_HANDLE = re.compile(r"\{\{(?:secret:|basic:([^{}:]{0,128}):)([A-Za-z][A-Za-z0-9_]{0,62})\}\}", re.ASCII)


async def none_known(_names: Collection[str]) -> dict[str, Opened]:
    """Know no secret."""
    return {}


async def read(session: Session, given: dict[str, Any]) -> str:
    """Answer secrets.read: the one way by which a value reaches a script."""
    name = given["name"]
    if not session.grants.of_secret(name, plain=True):
        raise lacking(f"secret:{name}:plain")
    found = await session.opens([name])
    if name not in found:
        raise _unknown(name)
    value = found[name].value
    session.redactor.add(name, value)
    return value


class SecretHandles:
    """The handles in the headers of one request.

    Args:
        headers: as the script gave them.
    """

    def __init__(self, headers: Headers) -> None:
        self._headers = headers
        self.names = {match[2] for _, value in headers for match in _HANDLE.finditer(value)}
        self._known: dict[str, Opened] = {}

    async def look_up(self, session: Session) -> None:
        """Fetch the values.

        Raises:
            CallRefused: ``denied`` for one that was not granted, ``secret_unknown`` for one that there is not, ``bad_header`` when
                the headers would be too long with them.
        """
        for name in sorted(self.names):
            if not session.grants.of_secret(name):
                raise lacking(f"secret:{name}")
        self._known = await session.opens(self.names) if self.names else {}
        for name in sorted(self.names - set(self._known)):
            raise _unknown(name)
        # A handle is short and its value may not be.
        asked = (match for _, value in self._headers for match in _HANDLE.finditer(value))
        if sum(2 * len(self._known[match[2]].value) + 3 * len(match[0]) for match in asked) > MAX_FILLED:
            raise CallRefused("bad_header", f"with their secrets the headers are longer than {MAX_FILLED} letters")

    def fill(self, origin: Origin, headers: Headers) -> Headers:
        """Put the values in for one origin.

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
        """Give an answer without the values: a host that repeats what it was sent tells the script nothing."""
        if not self._known:
            return answer
        redactor, of_names = Redactor(), Redactor()
        for known in self._known.values():
            redactor.add(known.name, known.value)
            of_names.add(known.name, known.value.lower())  # as names of headers are
        headers = tuple((of_names.text(name), redactor.text(value)) for name, value in answer.headers)
        return Answer(
            answer.status, redactor.text(answer.reason), redactor.text(answer.url), headers, redactor.bytes(answer.body),
            answer.redirected, answer.sent_bytes, answer.received_bytes,
        )  # fmt: skip


def _unknown(name: str) -> CallRefused:
    return CallRefused("secret_unknown", f"there is no secret of the name {name}")


HANDLERS = {"secrets.read": read}
