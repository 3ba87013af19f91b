"""Changed fields of a record, for people: the audit log's states before and after as rows of text."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a record.

    Attributes:
        path: names of the nested fields, joined by dots; empty for a record that is one value.
        before, after: the value as text; None if the field is absent.
    """

    path: str
    before: str | None
    after: str | None


#: Texts of values that are left out of a record that is new or gone.
_NOTHING = {"null", "[]", "{}", ""}


def field_changes(before: Any, after: Any) -> list[FieldChange]:
    """Return the fields that differ, in the order of the record; those with a value if there was no record before or after."""
    old, new = _fields(before), _fields(after)
    if before is None or after is None:
        old, new = ({path: text for path, text in each.items() if text not in _NOTHING} for each in (old, new))
    return [FieldChange(path, old.get(path), new.get(path)) for path in old | new if old.get(path) != new.get(path)]


def _fields(value: Any, path: str = "") -> dict[str, str]:
    """Return the leaves of a JSON value by path. A list is one leaf."""
    if value is None and not path:
        return {}
    if isinstance(value, dict) and value:
        found: dict[str, str] = {}
        for name, each in value.items():
            found |= _fields(each, f"{path}.{name}" if path else str(name))
        return found
    return {path: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
