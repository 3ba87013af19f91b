"""Functions of the platform that scripts call, such as ``crm.score(7)``: Python functions, or signed requests to the platform."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lodger.engine.core.errors import InputError
from lodger.engine.core.params import Field, read_fields
from lodger.stdlib import declarations
from lodger.stdlib.declarations import LANGUAGE

#: Longest time that a function may ask for, and its default, seconds.
MAX_TIMEOUT_S, TIMEOUT_S = 300.0, 10.0
_NAME = re.compile(r"([a-z][A-Za-z0-9_]{0,29})\.([a-z][A-Za-z0-9_]{0,29})", re.ASCII)
#: Names that mean something to JavaScript.
_TAKEN = frozenset(
    re.findall(
        r"\w+",
        "arguments await case catch class const default delete do else enum export false finally for function if import in let new null "
        "return static super switch then this throw true try typeof var void while with yield "
        "constructor hasOwnProperty isPrototypeOf propertyIsEnumerable prototype toJSON toLocaleString toString valueOf",
    )
)


class FunctionRefused(Exception):
    """Raised by a function of the platform: the script that called it gets this message (``function_refused``)."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Argument of a function: one call of a script.

    Attributes:
        params: by name, checked against the declaration.
        idempotency_key: the same for every repetition of this call, which can happen when an attempt is repeated.
        trial: whether the run has no effects: a dry run, or ``lodger exec``.
    """

    function: str
    tenant_id: str
    action_id: str
    script: str
    schedule_id: str | None
    params: Mapping[str, Any]
    idempotency_key: str
    trial: bool


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The place of the platform that answers calls: functions are requests to ``url``/NAME, signed with ``secret``."""

    url: str
    secret: str


F = TypeVar("F", bound=Callable[[FunctionCall], Any])


@dataclass(frozen=True, slots=True)
class PlatformFunction:
    """A function that scripts may call. Created by :func:`declare`.

    Attributes:
        fields: its params, in the order of a script's arguments.
        returns: the type of its result as the one field ``result``; None for any JSON value.
        trial: whether trials call it too, because it changes nothing.
        answered_by: a Python function, or where the request goes.
    """

    name: str
    fields: tuple[Field, ...]
    returns: tuple[Field, ...] | None
    trial: bool
    timeout_s: float
    help: str
    answered_by: Callable[[FunctionCall], Any] | Endpoint


def declare(
    name: str,
    answered_by: Callable[[FunctionCall], Any] | Endpoint,
    *,
    params: Mapping[str, Any] | None = None,
    returns: Mapping[str, Any] | None = None,
    trial: bool = False,
    timeout_s: float = TIMEOUT_S,
    help: str = "",  # noqa: A002 - the word of the declaration of params
) -> PlatformFunction:
    """Return a function as declared.

    Raises:
        InputError: function_invalid, fields_invalid.
    """
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    if found is None or _TAKEN & set(found.groups()):
        raise InputError("function_invalid", name=name)
    if found[1] in LANGUAGE | declarations.global_names() | declarations.run_members():
        raise InputError("function_invalid.taken", name=name, space=found[1])
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise InputError("function_invalid.timeout", timeout_s=timeout_s, maximum=MAX_TIMEOUT_S)
    if not callable(answered_by) and not isinstance(answered_by, Endpoint):
        raise InputError("function_invalid.function", function=answered_by)
    result = None if returns is None else read_fields({"result": returns})
    return PlatformFunction(name, read_fields(params or {}) or (), result, trial, float(timeout_s), help, answered_by)
