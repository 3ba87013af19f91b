"""Records of rows: a field has the value of the column with its name, an instant that of the column with its microseconds."""

from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from lodger.engine.core.clock import from_us_or_none
from lodger.engine.store.records import AnyRow

T = TypeVar("T")


def record(kind: Callable[..., T], row: AnyRow, /, **known: Any) -> T:
    """Return the record of a row.

    Args:
        kind: a dataclass; fields without a column of their name are known or have a default.
        known: fields whose values differ from their columns.
    """
    found: dict[str, Any] = {}
    for name, column, instant in _columns(kind, tuple(row._fields)):
        if name not in known:
            value = getattr(row, column)
            found[name] = from_us_or_none(value) if instant else value
    return kind(**found, **known)


@cache
def _columns(kind: Any, given: tuple[str, ...]) -> tuple[tuple[str, str, bool], ...]:
    """Return each field that has a column, with the column's name and whether it is an instant."""
    found = []
    for field in fields(kind):
        name, instant = field.name, field.type in (datetime, datetime | None)
        names = (f"{name.removesuffix('_at')}_us", f"{name}_us", name) if instant else (name,)
        found += [(name, column, instant) for column in names if column in given][:1]
    return tuple(found)
