"""The JSON shape of the engine's answers: one for HTTP, its client, the command line and the audit log.

The shape of a value is that of its type: dataclasses are objects, instants are RFC 3339 with Z, enumerations their words.
"""

from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python


def to_jsonable(value: object) -> Any:
    """Return a value as JSON types: dicts, lists, text, numbers, booleans, None."""
    try:
        return to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="null")
    except PydanticSerializationError as error:
        raise TypeError(f"{type(value).__name__} cannot be written as JSON") from error


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the adapter that validates and describes values of a type."""
    return TypeAdapter(kind)


def from_jsonable(kind: Any, body: object) -> Any:
    """Return the value of a type back from its JSON shape.

    Raises:
        pydantic.ValidationError: the shape is another.
    """
    return adapter(kind).validate_python(body)
