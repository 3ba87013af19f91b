"""Host side of ``Intl`` and ``toLocaleString``: ICU, in processes of one tenant each (:mod:`lodger.sandbox.nodejs.intl_process`)."""

import asyncio
from typing import Any

from lodger.engine.capabilities.session import Session
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.nodejs.intl_process import MAX_QUESTION
from lodger.sandbox.nodejs.limited_node import TooCostly

_FORMAT = frozenset({"format", "formatToParts"})
_RANGE = _FORMAT | {"formatRange", "formatRangeToParts"}
#: A description from which the guest writes texts itself.
_COMPILED = frozenset({"compiled"})
_CLASS = frozenset({"resolvedOptions", "supportedLocalesOf"})
#: Methods that may be asked for, by class. Date and String stand for their methods that depend on a locale.
METHODS = {
    "Collator": _CLASS | {"compare", "ranks"},
    "NumberFormat": _CLASS | _RANGE | _COMPILED,
    "DateTimeFormat": _CLASS | _RANGE | _COMPILED,
    "PluralRules": _CLASS | {"select", "selectRange"} | _COMPILED,
    "RelativeTimeFormat": _CLASS | _FORMAT,
    "ListFormat": _CLASS | _FORMAT,
    "DisplayNames": _CLASS | {"of"},
    "DurationFormat": _CLASS | _FORMAT,
    "Intl": frozenset({"getCanonicalLocales", "supportedValuesOf"}),
    "Date": frozenset({"toLocaleString", "toLocaleDateString", "toLocaleTimeString"}) | _COMPILED,
    "String": frozenset({"toLocaleUpperCase", "toLocaleLowerCase"}),
}


async def ask(session: Session, given: dict[str, Any]) -> str:
    """Handle intl.ask: return the JSON text of ICU's answer. The processes' CPU time is bounded by the attempt's."""
    if given["method"] not in METHODS.get(given["kind"], ()):
        raise bad_request("Intl has no such class or method")
    if session.intl is None:
        raise CallRefused("intl_missing", "Intl is not answered here")
    if len(given["given"]) > MAX_QUESTION:
        of = given["kind"] if given["kind"] in ("Intl", "Date", "String") else f"Intl.{given['kind']}"
        what = f"its locales, options and values have at most {MAX_QUESTION} characters, as JSON"
        raise _too_costly(f"{given['method']} of {of}: {what}")
    maximum_ms = session.claim.limits.cpu_ms
    if session.computed_us > maximum_ms * 1000:
        raise _too_costly(f"the calls of Intl used the run's {maximum_ms} ms of CPU time")
    try:
        asked = session.intl.ask(session.claim.tenant_id, given["kind"], given["method"], given["given"])
        answer = await asyncio.wrap_future(asked)
    except TooCostly as refused:
        session.charge_cpu((maximum_ms + 1) * 1000 - session.computed_us)
        raise _too_costly(f"this call of Intl was ended: {refused}") from None
    except SandboxError as problem:
        if problem.code == "package_missing":
            raise CallRefused(
                "intl_missing",
                "Intl and toLocaleString need Node.js, which the engine lacks: install lodger with the extra intl",
            ) from None
        raise Unavailable.of(problem) from problem
    session.charge_cpu(round(answer.cpu_ms * 1000))
    return answer.text


def _too_costly(message: str) -> CallRefused:
    """Return the refusal ``intl_limit``: the answer would cost too much memory or time."""
    return CallRefused("intl_limit", message)


HANDLERS = {"intl.ask": ask}
