"""Records of rows: a field has the value of the column with its name, an instant that of the column with its microseconds."""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from functools import cache, partial
from typing import Any, TypeVar

from lodger.engine.core.clock import from_us
from lodger.engine.store.records import AnyRow, Json
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

T = TypeVar("T")


def load_list(text: str | None) -> tuple[Any, ...] | None:
    """Return the values of a JSON list, None for None."""
    return None if text is None else tuple(json.loads(text))


#: How fields of these types are read from columns; objects and lists are JSON, values of other types are as they are.
_READERS: dict[Any, Callable[[Any], Any]] = {
    bool: bool,
    datetime: from_us,
    dict[str, Any]: json.loads,
    Json: json.loads,
    Outcome: Outcome,
    ScriptError: lambda text: ScriptError(**json.loads(text)),
    tuple[str, ...]: load_list,
    tuple[dict[str, Any], ...]: load_list,
}
_READERS |= {kind | None: read for kind, read in _READERS.items() if kind is not Json}


def record(kind: Callable[..., T], row: AnyRow, /, **known: Any) -> T:
    """Return the record of a row. NULL is the field's default, or None.

    Args:
        kind: a dataclass; fields without a column of their name are known or have a default.
        row: a row of a query, or its values by column.
        known: fields whose values differ from their columns.
    """
    named, of = (row, row.__getitem__) if isinstance(row, Mapping) else (row._fields, partial(getattr, row))
    found: dict[str, Any] = {}
    for name, column, read, has_default in _columns(kind, tuple(named)):
        value = of(column)
        if value is not None:
            found[name] = value if read is None or name in known else read(value)
        elif not has_default:
            found[name] = None
    return kind(**found | known)


@cache
def _columns(kind: Any, given: tuple[str, ...]) -> tuple[tuple[str, str, Callable[[Any], Any] | None, bool], ...]:
    """Return each field that has a column, with the column's name, the function that reads its values, and whether it has a default."""
    found = []
    for field in fields(kind):
        name, instant = field.name, field.type in (datetime, datetime | None)
        names = (f"{name.removesuffix('_at')}_us", f"{name}_us", name) if instant else (name,)
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        found += [(name, column, _READERS.get(field.type), has_default) for column in names if column in given][:1]
    return tuple(found)
