"""Encodes a write set as JSON text and decodes it without loss, for sealed attempts.

Sets are identified by the names that scripts use; a node that does not expose one of them cannot decode the text.
"""

import base64
import datetime as dt
import json
from dataclasses import fields
from typing import Any, get_args

from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.data.sets.dataset import Collection, Dataset, TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.values.fields import ColumnField
from lodger.engine.data.values.kinds import Kind
from lodger.engine.data.values.stored import NAN, as_decimal
from lodger.engine.effects.effect import Effect
from lodger.engine.effects.write_set import ROW_EFFECTS, ExpectedRow, ExpectedValue, WriteSet


def pack(kind: Kind, value: Any) -> Any:
    """Return the JSON-able form of a canonical value."""
    if value is None:
        return None
    if kind is Kind.DECIMAL:
        return str(value)
    if kind in (Kind.INSTANT, Kind.DATE):
        return value.isoformat()
    if kind is Kind.BYTES:
        return base64.b64encode(value).decode()
    if kind is Kind.FLOAT:
        return float(value).hex()  # NaN and Infinity are no JSON
    return value


def unpack(kind: Kind, value: Any) -> Any:
    """Return the canonical value from the result of :func:`pack`."""
    if value is None:
        return None
    if kind is Kind.DECIMAL:
        return as_decimal(value, None)
    if kind is Kind.INSTANT:
        return dt.datetime.fromisoformat(value)
    if kind is Kind.DATE:
        return dt.date.fromisoformat(value)
    if kind is Kind.BYTES:
        return base64.b64decode(value)
    if kind is Kind.FLOAT:
        return NAN if value == "nan" else float.fromhex(value)
    return value


def pack_row(rows: Dataset, row: Row) -> dict[str, Any]:
    """Return the JSON-able form of a row, or of some of its columns."""
    return {name: pack(field_of(rows, name).kind, value) for name, value in row.items()} if _typed(rows) else row


def unpack_row(rows: Dataset, row: dict[str, Any]) -> Row:
    """Return the row from the result of :func:`pack_row`."""
    return {name: unpack(field_of(rows, name).kind, value) for name, value in row.items()} if _typed(rows) else row


def field_of(rows: Dataset, name: str) -> ColumnField:
    """Return a column of a table.

    Raises:
        KeyError: it has none of that name (any more).
    """
    assert isinstance(rows, TableDataset)
    return rows.fields[name]


def _typed(rows: Dataset) -> bool:
    """Whether the columns of a dataset have types: a collection has none."""
    return isinstance(rows, TableDataset)


FORMAT = 1
_CLASSES: dict[str, type[Any]] = {each.__name__: each for each in get_args(Effect)}


class WriteSetDecodeError(Exception):
    """A sealed write set cannot be decoded here: a dataset is not exposed on this node, or a later version encoded it."""


def encode(write_set: WriteSet) -> str:
    """Return the write set as JSON text."""
    body = {
        "format": FORMAT,
        "tenant": write_set.tenant_id,
        "action": write_set.action_id,
        "step": write_set.step,
        "effects": [[index, _effect(effect)] for index, effect in write_set.effects],
        "standing": [
            [
                _set(rows),
                [[_key(rows, key), _base(rows, held.base), held.index, held.line] for key, held in some.items()],
            ]
            for rows, some in write_set.expected_rows.items()
        ],
        "consumer": write_set.consumer,
        "held": [[each.scope, each.key, each.base, each.index, each.line] for each in write_set.held],
    }
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
        return WriteSet(
            body["tenant"],
            body["action"],
            body["step"],
            datasets,
            tuple((index, _effect_of(each, datasets)) for index, each in body["effects"]),
            {
                (rows := _set_of(name, datasets)): {
                    _key_of(rows, key): ExpectedRow(None if base is None else unpack_row(rows, base), index, line)
                    for key, base, index, line in some
                }
                for name, some in body["standing"]
            },
            tuple(ExpectedValue(*each) for each in body["held"]),
            body["consumer"],
        )
    except KeyError as error:
        raise WriteSetDecodeError(f"{error.args[0]!r} is not exposed on this node") from None


def _set(rows: Dataset) -> list[str]:
    """Return kind and name of a dataset, JSON-able."""
    return ["collection" if isinstance(rows, Collection) else "table", rows.name]


def _set_of(named: list[str], datasets: Datasets) -> Dataset:
    """Return the dataset that a stored name refers to."""
    kind, name = named
    if kind == "collection":
        return Collection(name)
    return datasets.table(name)


def _key(rows: Dataset, key: Any) -> Any:
    """Return the key of a row, JSON-able."""
    return pack(rows.key.kind, key)


def _key_of(rows: Dataset, key: Any) -> Any:
    """Return the key of a row from its stored form."""
    return unpack(rows.key.kind, key)


def _base(rows: Dataset, base: Any) -> Any:
    """Return the expected content of a row in JSON-able form, None for a row that must only exist."""
    return None if base is None else pack_row(rows, base)


def _effect(effect: Effect) -> dict[str, Any]:
    """Return an effect, JSON-able."""
    body: dict[str, Any] = {"is": type(effect).__name__}
    for each in fields(effect):
        value = getattr(effect, each.name)
        if value is None:
            continue
        if isinstance(effect, ROW_EFFECTS):
            value = _part(effect, each.name, value)
        body[each.name] = sorted(value) if isinstance(value, frozenset) else value
    return body


def _part(effect: Any, name: str, value: Any) -> Any:
    """Return one field of an effect, JSON-able."""
    if name == "rows":
        return _set(value)
    if name == "key":
        return _key(effect.rows, value)
    if name in _ROWS:
        return pack_row(effect.rows, value)
    return value


#: Fields of effects that are rows, or parts of rows.
_ROWS = ("row", "changes", "amounts")


def _effect_of(body: dict[str, Any], datasets: Datasets) -> Effect:
    """Return an effect from its stored form."""
    made = _CLASSES[body["is"]]
    given = {name: value for name, value in body.items() if name != "is"}
    if issubclass(made, ROW_EFFECTS):
        rows = given["rows"] = _set_of(given["rows"], datasets)
        given["key"] = _key_of(rows, given["key"])
        for name in _ROWS:
            if name in given:
                given[name] = unpack_row(rows, given[name])
        if "given" in given:
            given["given"] = frozenset(given["given"])
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    effect: Effect = made(**given)
    return effect
