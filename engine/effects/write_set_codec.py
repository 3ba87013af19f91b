"""Encodes a write set as JSON text and decodes it without loss, for sealed attempts.

A value that JSON lacks is the list of its type and its content. Sets are identified by the names that scripts use; a node that does not
expose one of them, or one of its columns, cannot decode the text.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, get_args

from lodger.engine.data.sets.dataset import Collection, Dataset, TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.values.stored import NAN, as_decimal
from lodger.engine.effects.effect import Attachment, Effect
from lodger.engine.effects.write_set import ExpectedRow, ExpectedValue, WriteSet

FORMAT = 2
_CLASSES: dict[str, type[Any]] = {
    each.__name__: each for each in (*get_args(Effect), Attachment, ExpectedRow, ExpectedValue)
}
_SEQUENCES: tuple[type[Any], ...] = (list, tuple, frozenset)
#: How values of these types become text, and are made of it again. A datetime is a date, too, and comes first.
_TEXTS: tuple[tuple[type[Any], Callable[[Any], str], Callable[[str], Any]], ...] = (
    (float, float.hex, lambda text: NAN if text == "nan" else float.fromhex(text)),
    (Decimal, str, lambda text: as_decimal(text, None)),
    (datetime, datetime.isoformat, datetime.fromisoformat),
    (date, date.isoformat, date.fromisoformat),
    (bytes, lambda value: base64.b64encode(value).decode(), base64.b64decode),
)


class WriteSetDecodeError(Exception):
    """A sealed write set cannot be decoded here: a dataset is not exposed on this node, or another version encoded it."""


def encode(write_set: WriteSet) -> str:
    """Return the write set as JSON text."""
    body = {"format": FORMAT, "write_set": _packed(write_set)}
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def decode(text: str, datasets: Datasets) -> WriteSet:
    """Decode the result of :func:`encode`.

    Raises:
        WriteSetDecodeError: this node cannot decode it.
    """
    body = json.loads(text)
    if body.get("format") != FORMAT:
        raise WriteSetDecodeError(
            f"its stored effects have format {body.get('format')}, this version reads format {FORMAT}"
        )
    try:
        found: WriteSet = _unpacked(body["write_set"], datasets)
        for _index, effect in found.effects:
            for part in ("row", "changes", "amounts"):
                _require_columns(getattr(effect, "rows", None), getattr(effect, part, ()))
        for rows, some in found.expected_rows.items():
            for held in some.values():
                _require_columns(rows, held.base or ())
    except KeyError as error:
        raise WriteSetDecodeError(f"{error.args[0]!r} is not exposed on this node") from None
    return found


def _require_columns(rows: Dataset | None, names: Iterable[str]) -> None:
    """Raise KeyError if a table does not have (any more) one of the columns of a row."""
    if isinstance(rows, TableDataset):
        for name in names:
            rows.fields[name]


def _packed(value: Any) -> Any:
    """Return a value of a write set, JSON-able."""
    if value is None or isinstance(value, bool | int | str):
        return value
    for kind, written, _read in _TEXTS:
        if isinstance(value, kind):
            return [kind.__name__, written(value)]
    for kind in _SEQUENCES:
        if isinstance(value, kind):
            return [kind.__name__, [_packed(each) for each in value]]
    if isinstance(value, Mapping):
        return ["dict", [[_packed(key), _packed(each)] for key, each in value.items()]]
    if isinstance(value, TableDataset | Collection):
        return [type(value).__name__, value.name]
    named = ((each.name, getattr(value, each.name)) for each in fields(value))
    return [type(value).__name__, {name: _packed(each) for name, each in named if not isinstance(each, Datasets)}]


def _unpacked(value: Any, datasets: Datasets) -> Any:
    """Return a value from the result of :func:`_packed`.

    Raises:
        KeyError: a table is not exposed.
    """
    if not isinstance(value, list):
        return value
    name, body = value
    readers: dict[str, Callable[[Any], Any]] = {kind.__name__: read for kind, _written, read in _TEXTS}
    readers |= {TableDataset.__name__: datasets.table, Collection.__name__: Collection}
    if name in readers:
        return readers[name](body)
    if isinstance(body, dict):
        made = partial(WriteSet, datasets=datasets) if name == WriteSet.__name__ else _CLASSES[name]
        return made(**{field: _unpacked(each, datasets) for field, each in body.items()})
    if name == "dict":
        return {_unpacked(key, datasets): _unpacked(each, datasets) for key, each in body}
    (kind,) = (each for each in _SEQUENCES if each.__name__ == name)
    return kind(_unpacked(each, datasets) for each in body)
