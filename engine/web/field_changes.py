"""Changed fields of a record, for people: the audit log's states before and after as rows of text."""

import json
from typing import Any

from lodger.engine.store.records import Change
from lodger.engine.store.scripts import differences

#: Texts of values that are left out of a record that is new or gone.
_NOTHING = {"null", "[]", "{}", ""}


def field_changes(before: Any, after: Any) -> tuple[Change, ...]:
    """Return the fields that differ, nested ones by their names joined by dots, with their values as text, None for an absent one;
    those with a value if there was no record before or after."""
    old, new = _fields(before), _fields(after)
    if before is None or after is None:
        old, new = ({path: text for path, text in each.items() if text not in _NOTHING} for each in (old, new))
    return differences.of_fields(old, new)


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
