"""Typed params of platform scripts and handlers: declared once, checked wherever a value is bound.

``{"days": {"type": "integer", "min": 1, "max": 30, "default": 7, "help": "how far back"}}``. Enough to build a form from.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from lodger.engine.core.errors import InputError

TYPES = ("text", "integer", "number", "boolean", "instant", "choice", "list")
MAX_FIELDS = 50
MAX_TEXT = 10_000
MAX_HELP = 500
#: What every binding can carry without loss: JavaScript's whole numbers.
_WHOLE = 2**53 - 1
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Field:
    """One param.

    Attributes:
        type: one of TYPES; ``list`` holds texts.
        required: it must be given; others that are not given have their default, or are absent.
        min, max: of a number its value, of a text its letters, of a list its items.
        choices: of a ``choice``.
    """

    name: str
    type: str
    required: bool = False
    default: Any = None
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    help: str = ""


def read_fields(declared: Mapping[str, Any] | None) -> tuple[Field, ...] | None:
    """Read a declaration: an object by name, each an object with the attributes of :class:`Field`; None for any JSON value.

    Raises:
        InputError: fields_invalid.
    """
    if declared is None:
        return None
    if not isinstance(declared, Mapping) or len(declared) > MAX_FIELDS:
        raise InputError("fields_invalid.object", maximum=MAX_FIELDS)
    return tuple(_field(name, body) for name, body in declared.items())


def _field(name: object, body: object) -> Field:
    """Return a declared param, checked."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError("fields_invalid.name", name=name)
    if not isinstance(body, Mapping) or set(body) - {"type", "required", "default", "min", "max", "choices", "help"}:
        raise InputError("fields_invalid.declaration", name=name, body=body)
    choices = body.get("choices") or ()
    if not isinstance(choices, list | tuple):
        raise InputError("fields_invalid.choices", name=name)
    field = Field(name, **{**body, "type": body.get("type", "text"), "choices": tuple(choices)})
    if field.type not in TYPES:
        raise InputError("fields_invalid.type", name=name, type=field.type, types=TYPES)
    if (field.type == "choice") != bool(field.choices) or not all(isinstance(each, str) for each in field.choices):
        raise InputError("fields_invalid.choices", name=name)
    for edge in (field.min, field.max):
        if edge is not None and (
            isinstance(edge, bool) or not isinstance(edge, int | float) or not math.isfinite(edge)
        ):
            raise InputError("fields_invalid.bound", name=name, edge=edge)
    if not isinstance(field.required, bool) or not isinstance(field.help, str) or len(field.help) > MAX_HELP:
        raise InputError("fields_invalid.flags", name=name, maximum=MAX_HELP)
    if field.default is not None:
        try:
            _value(field, field.default)
        except InputError as refused:
            raise InputError("fields_invalid.default", name=name, reason=refused.what) from None
    return field


def dump_fields(fields: tuple[Field, ...] | None) -> dict[str, Any] | None:
    """Return the declaration of fields, without attributes that have their default."""
    if fields is None:
        return None
    return {
        field.name: {
            key: value for key, value in asdict(field).items() if key != "name" and value not in (None, (), "", False)
        }
        for field in fields
    }


def validate_params(fields: tuple[Field, ...] | None, params: Any) -> Any:
    """Return params with their defaults, when they satisfy the fields; without fields anything does.

    Raises:
        InputError: params_invalid, with the ``param`` that is wrong.
    """
    if fields is None:
        return params
    given = {} if params is None else params
    if not isinstance(given, Mapping):
        raise InputError("params_invalid.object", details={"param": ""})
    known = {field.name for field in fields}
    unknown = sorted(str(name) for name in given if name not in known)
    if unknown:
        raise InputError(
            "params_invalid.unknown", name=unknown[0], names=sorted(known) or ["none"], details={"param": unknown[0]}
        )
    found: dict[str, Any] = {}
    for field in fields:
        value = given.get(field.name)
        if value is None:
            if field.required and field.default is None:
                raise InputError(
                    "params_invalid.missing", name=field.name, type=field.type, details={"param": field.name}
                )
            if field.default is not None:
                found[field.name] = field.default
        else:
            found[field.name] = _value(field, value)
    return found


def _value(field: Field, value: Any) -> Any:
    """Return the value of a param, checked against its declaration."""
    name = field.name
    size: float | None = None
    if field.type == "boolean":
        _require(isinstance(value, bool), name, value, "true or false")
    elif field.type in {"integer", "number"}:
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        _require(number, name, value, "a number")
        _require(abs(value) <= _WHOLE, name, value, f"a number from -{_WHOLE} to {_WHOLE}")
        _require(field.type == "number" or value == int(value), name, value, "a whole number")
        size = value = int(value) if field.type == "integer" else value
    elif field.type == "choice":
        _require(value in field.choices, name, value, "one of: " + ", ".join(field.choices))
    elif field.type == "instant":
        _require(isinstance(value, str) and _is_instant(value), name, value, "an instant such as 2027-01-31T09:00:00Z")
    elif field.type == "list":
        texts = isinstance(value, list | tuple) and all(
            isinstance(each, str) and len(each) <= MAX_TEXT for each in value
        )
        _require(texts and len(value) <= MAX_TEXT, name, value, "a list of texts")
        size = len(value)
    else:
        _require(
            isinstance(value, str) and len(value) <= MAX_TEXT, name, value, f"a text of at most {MAX_TEXT} characters"
        )
        size = len(value)
    if size is not None:
        _require(field.min is None or size >= field.min, name, value, f"at least {field.min}")
        _require(field.max is None or size <= field.max, name, value, f"at most {field.max}")
    return value


def _is_instant(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _require(satisfied: bool, name: str, value: object, rule: str) -> None:
    """Raise ``params_invalid``, which states the rule, unless the value of a param satisfies it."""
    if not satisfied:
        shown = repr(value)
        details = {"param": name}
        raise InputError(
            "params_invalid.value",
            name=name,
            value=shown if len(shown) <= 100 else shown[:99] + "…",
            rule=rule,
            details=details,
        )
