"""Lossless JSON form of canonical values, for rows that a commit has yet to apply.

Unlike the wire form, which scripts see, it accepts values that JavaScript cannot represent.
"""

import base64
import datetime as dt
from typing import Any

from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.data.sets.dataset import Dataset, TableDataset
from lodger.engine.data.values.fields import ColumnField
from lodger.engine.data.values.kinds import Kind
from lodger.engine.data.values.stored import NAN, as_decimal


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
    """Return the canonical value of :func:`pack`."""
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
    """Return the row of :func:`pack_row`."""
    return {name: unpack(field_of(rows, name).kind, value) for name, value in row.items()} if _typed(rows) else row


def field_of(rows: Dataset, name: str) -> ColumnField:
    """Return a column of a table's set.

    Raises:
        KeyError: it has none of that name (any more).
    """
    assert isinstance(rows, TableDataset)
    return rows.fields[name]


def _typed(rows: Dataset) -> bool:
    """Whether the columns of a set have types: a collection has none."""
    return isinstance(rows, TableDataset)
