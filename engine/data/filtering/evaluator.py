"""The filter language in Python, for rows in the journal. Its results equal those of the SQL of ``sql_compiler.py``."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cmp_to_key
from typing import Any

from lodger.engine.data.filtering.parsing import And, Compare, Filter, In, Not, Op, Or, Order, fold
from lodger.engine.data.values.fields import NULL, STRING, ColumnField, Field, PathField, RelatedField, classed

#: A row as journal and readers hold it: canonical values by column name, or a document's wire JSON with its ``id``.
Row = dict[str, Any]
#: Operators of order and of text, between two values that are not null.
_COMPARE: dict[Op, Callable[[Any, Any], bool]] = {
    Op.LT: operator.lt, Op.LTE: operator.le, Op.GT: operator.gt, Op.GTE: operator.ge, Op.CONTAINS: operator.contains,
    Op.STARTS_WITH: str.startswith,
}  # fmt: skip


def matches(tree: Filter, row: Row) -> bool:
    """Whether a row satisfies the filter."""
    if isinstance(tree, And):
        return all(matches(part, row) for part in tree.parts)
    if isinstance(tree, Or):
        return any(matches(part, row) for part in tree.parts)
    if isinstance(tree, Not):
        return not matches(tree.part, row)
    if isinstance(tree, In):
        return any(held == value for held in _values(tree.field, row) for value in tree.values)
    if tree.op is Op.NE:
        return not matches(replace(tree, op=Op.EQ), row)
    return any(_compare(tree, held) for held in _values(tree.field, row))


def _values(field: Field, row: Row) -> list[Any]:
    """Return a field's value; of a path in a document all values that it leads to, a null if there is none."""
    if isinstance(field, PathField):
        return [classed(each) for each in field.every(row)] or [classed(None)]
    return [value_of(field, row)]


def value_of(field: Field, row: Row) -> Any:
    """Return a row's value for a field: a column's canonical value, or (type rank, comparable value) at a document's path."""
    if isinstance(field, ColumnField):
        return row.get(field.name)
    if isinstance(field, RelatedField):
        return (row.get(field.hidden) or {}).get(field.inner.name)
    return classed(field.found(row))


def _compare(tree: Compare, held: Any) -> bool:
    """Whether a value satisfies a comparison."""
    value, op = tree.value, tree.op
    if tree.ignore_case:
        held = _folded(held)
    if op is Op.EQ:
        return bool(held == value)
    if not isinstance(tree.field, PathField):
        return held is not None and _COMPARE[op](held, value)
    return held[0] == value[0] and held[0] != NULL and _COMPARE[op](held[1], value[1])


def _folded(held: Any) -> Any:
    """Return a value with the letters A to Z of its text in lower case; a value that is no text is unchanged."""
    if isinstance(held, tuple):
        return (STRING, fold(held[1])) if held[0] == STRING else held
    return fold(held) if isinstance(held, str) else held


def terms_of(order: Sequence[Order], row: Row) -> tuple[Any, ...]:
    """Return the ordering values of a row; a cursor is made of them."""
    return tuple(value_of(term.field, row) for term in order)


def placed(order: Sequence[Order], left: Sequence[Any], right: Sequence[Any]) -> int:
    """Compare two rows by their ordering values: negative when ``left`` comes first. Nulls are smallest."""
    for term, one, other in zip(order, left, right, strict=True):
        if one == other:
            continue
        if one is None or other is None:
            smaller = one is None
        else:
            smaller = one < other
        return -1 if smaller is not term.descending else 1
    return 0


def ordered(order: Sequence[Order], rows: Sequence[Row]) -> list[Row]:
    """Sort rows by an ordering that ends with the key."""

    def compare_rows(one: Row, other: Row) -> int:
        """Return which of two rows comes first: a negative number for ``one``."""
        return placed(order, terms_of(order, one), terms_of(order, other))

    return sorted(rows, key=cmp_to_key(compare_rows))
