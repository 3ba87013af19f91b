"""The filter language as SQL: the same answers as ``evaluator.py``. Identifiers come from fields, every value is bound.

Each comparison is never NULL, so NOT means what it means in Python.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Enum, String, and_, false, func, literal, not_, null, or_, true
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.core import strict_json
from lodger.engine.data.filtering.parsing import And, Compare, Filter, In, Not, Op, Or, Order
from lodger.engine.data.values.fields import NULL, OTHER, STRING, TIME, ColumnField, OwnField, PathField, RelatedField
from lodger.engine.data.values.kinds import Kind
from lodger.engine.data.values.stored import bound_type, column_of, floor_ceiling, stored
from lodger.engine.store.drivers import Driver
from lodger.engine.store.drivers.expressions import same_text
from lodger.engine.store.drivers.features import JsonPath
from lodger.engine.store.schema.script_data import documents

Clause = ColumnElement[bool]
#: Operators of equality and order.
COMPARE: dict[Op, Callable[[Any, Any], Any]] = {
    Op.EQ: operator.eq, Op.LT: operator.lt, Op.LTE: operator.le, Op.GT: operator.gt, Op.GTE: operator.ge,
}  # fmt: skip


class Compiler:
    """Compiles trees and orders for one database.

    Args:
        driver: the database's.
        related: compiles a condition on the row that a foreign key leads to.
    """

    def __init__(self, driver: Driver, related: Callable[[Compare | In], Clause] | None = None) -> None:
        self.driver = driver
        self._related = related

    def where(self, tree: Filter) -> Clause:
        """Return the SQL condition of a filter."""
        if isinstance(tree, And):
            return and_(true(), *(self.where(part) for part in tree.parts))
        if isinstance(tree, Or):
            return or_(false(), *(self.where(part) for part in tree.parts))
        if isinstance(tree, Not):
            return not_(self.where(tree.part))
        field = tree.field
        if isinstance(field, RelatedField):
            assert self._related is not None
            return self._related(tree)
        if isinstance(tree, In):
            return self._in(field, tree.values)
        if tree.ignore_case:
            return self._folded(field, tree.op, tree.value)
        return self.compared(field, tree.op, tree.value, in_lists=True)

    def bound(self, field: ColumnField, value: Any) -> ColumnElement[Any]:
        """Return a canonical value of a column as a bound SQL value."""
        if value is None:
            return null()
        return literal(stored(field, value, self.driver), bound_type(field, self.driver))

    def written(self, field: ColumnField, value: Any) -> ColumnElement[Any]:
        """Bind a canonical value that is written into a column: PostgreSQL's enumerations take no plain text."""
        if value is not None and isinstance(field.column.type, Enum):
            return literal(value, field.column.type)
        return self.bound(field, value)

    def terms(self, order: Sequence[Order]) -> list[ColumnElement[Any]]:
        """Return the expressions of ORDER BY: nulls smallest."""
        made: list[ColumnElement[Any]] = []
        for term in order:
            parts = self.parts(term.field)
            made.extend((part.desc().nulls_last() if term.descending else part.asc().nulls_first()) for part in parts)
        return made

    def parts(self, field: ColumnField | PathField) -> list[ColumnElement[Any]]:
        """Return the expressions by which a field is ordered and grouped: the column, or a path's type and value."""
        if isinstance(field, ColumnField):
            return [column_of(field, self.driver)]
        return [self.place(field).rank(), *self.place(field).values()]

    def after(self, order: Sequence[Order], values: Sequence[Any]) -> Clause:
        """Return the condition that a row is ordered after the one with these values."""
        ways: list[Clause] = []
        equal: list[Clause] = []
        for term, value in zip(order, values, strict=True):
            ways.append(and_(true(), *equal, self._beyond(term, value)))
            equal.append(self._same(term.field, value))
        return or_(false(), *ways)

    def compared(self, field: OwnField, op: Op, value: Any, *, in_lists: bool = False) -> Clause:
        """Return the condition that compares a field with a value.

        Args:
            in_lists: of a path, whether one of the values that it leads to through lists may satisfy the comparison.
        """
        if op is Op.NE:
            return not_(self.compared(field, Op.EQ, value, in_lists=in_lists))
        if op is Op.EQ and (isinstance(field, ColumnField) or value[0] == NULL):
            return (
                self.place(field).missing() if isinstance(field, PathField) and in_lists else self._same(field, value)
            )
        return self._of_value(field, value, self._comparison(field, op, value), in_lists=in_lists)

    def _comparison(self, field: OwnField, op: Op, value: Any) -> Callable[[ColumnElement[Any]], Clause]:
        """Return the function that compares an expression of a field's value with a value that is not null."""
        if isinstance(field, PathField):
            rank, value = value
        if op in (Op.CONTAINS, Op.STARTS_WITH):
            return lambda held: self._text(held, op, value)
        if isinstance(field, PathField):
            bound = self._inner(rank, value)
        else:
            if field.kind is Kind.DECIMAL and field.scale is not None:
                # a value between two that the column can hold is compared by its neighbour: doubles would blur it
                low, high = floor_ceiling(value, field.scale)
                value = high if op in (Op.LT, Op.GTE) else low
            bound = self.bound(field, value)
        return lambda held: COMPARE[op](held, bound)

    def _of_value(
        self, field: OwnField, value: Any, asked: Callable[[ColumnElement[Any]], Clause], *, in_lists: bool
    ) -> Clause:
        """Return a condition on a field's value, false for null and for values of other types than ``value``; see :meth:`compared`."""
        if isinstance(field, ColumnField):
            return and_(field.column.is_not(None), asked(column_of(field, self.driver)))

        def of_rank_and_asked(alike: Clause, held: ColumnElement[Any]) -> Clause:
            """Return the condition that a value has the wanted type and fulfils the comparison."""
            return and_(alike, asked(held))

        place, rank = self.place(field), value[0]
        own: Clause = func.coalesce(of_rank_and_asked(*place.held(rank)), false())
        return func.coalesce(or_(own, place.some(rank, of_rank_and_asked)), false()) if in_lists else own

    def _same(self, field: OwnField, value: Any) -> Clause:
        """Return the condition that a field equals a value, null included."""
        if isinstance(field, PathField):
            if value[0] in (NULL, OTHER):
                alike: Clause = self.place(field).rank() == value[0]
                return alike
            return self._of_value(field, value, self._comparison(field, Op.EQ, value), in_lists=False)
        if value is None:
            return field.column.is_(None)
        if not _holds(field, value):
            return false()
        return and_(field.column.is_not(None), self.equals(field, value))

    def equals(self, field: ColumnField, value: Any) -> Clause:
        """Return the condition that a column holds a value that is not None."""
        bound = self.bound(field, value)
        if field.kind is Kind.TEXT:
            return same_text(field.column, bound)
        alike: Clause = column_of(field, self.driver) == bound
        return alike

    def among(self, field: ColumnField, values: Sequence[Any]) -> Clause:
        """Return the condition that a column holds one of these values, none of which is None."""
        bound = [self.bound(field, value) for value in values]
        found = column_of(field, self.driver).in_(bound)
        if field.kind is not Kind.TEXT or isinstance(field.column.type, Enum):
            return found
        return and_(field.column.in_(bound), found)

    def _in(self, field: OwnField, wanted: Sequence[Any]) -> Clause:
        """Compile the membership of a field in a list of values."""
        if isinstance(field, PathField):
            return self._path_in(field, wanted)
        column = field.column
        values = [value for value in wanted if value is not None and _holds(field, value)]
        found: Clause = and_(column.is_not(None), self.among(field, values)) if values else false()
        return or_(found, column.is_(None)) if None in wanted else found

    def _path_in(self, field: PathField, values: Sequence[tuple[int, Any]]) -> Clause:
        """Compile the membership of a value inside a document in a list."""
        ways: list[Clause] = []
        for rank in sorted({rank for rank, _ in values}):
            bound = [self._inner(rank, inner) for of, inner in values if of == rank]
            among = operator.methodcaller("in_", bound)
            ways.append(
                self.place(field).missing()
                if rank == NULL
                else self._of_value(field, (rank, None), among, in_lists=True)
            )
        return or_(false(), *ways)

    def _beyond(self, term: Order, value: Any) -> Clause:
        """Return the condition that a row's value comes after this one in the order of a term."""
        field, op = term.field, Op.LT if term.descending else Op.GT
        if isinstance(field, ColumnField):
            if value is None:
                return false() if term.descending else field.column.is_not(None)
            past = self.compared(field, op, value)
            return or_(past, field.column.is_(None)) if term.descending else past
        further: Clause = COMPARE[op](self.place(field).rank(), value[0])
        return further if value[0] in (NULL, OTHER) else or_(further, self.compared(field, op, value))

    def _folded(self, field: OwnField, op: Op, value: Any) -> Clause:
        """Return the condition of a comparison that ignores the case of A to Z; ``value`` is folded already."""
        if op is Op.NE:
            return not_(self._folded(field, Op.EQ, value))
        text = value[1] if isinstance(field, PathField) else value

        def folded_condition(held: ColumnElement[Any]) -> Clause:
            """Return the comparison with a text whose ASCII letters are lower case."""
            folded = self.driver.ascii_lower(held)
            if op is Op.EQ:
                same: Clause = folded == literal(text, String())
                return same
            return self._text(folded, op, text)

        return self._of_value(field, value, folded_condition, in_lists=True)

    def _text(self, text: ColumnElement[Any], op: Op, value: str) -> Clause:
        """Compile a test whether a text contains or begins with another."""
        bound = literal(value, String())
        if op is Op.CONTAINS:
            return self.driver.position(text, bound) > 0
        return func.substr(text, 1, len(value)) == bound

    def _inner(self, rank: int, inner: Any) -> ColumnElement[Any]:
        """Return the bound SQL value of an operand inside a document; ``rank`` is its type's."""
        if rank in (STRING, TIME):
            return literal(inner, String())
        return self.driver.json_number(inner)

    def place(self, field: PathField) -> JsonPath:
        """Return the place of a value inside a document."""
        return self.driver.json_path(documents.c.body, field.parts, strict_json.INSTANT)


def _holds(field: ColumnField, value: Any) -> bool:
    """Whether a column of this scale can hold the value at all."""
    if field.kind is not Kind.DECIMAL or field.scale is None:
        return True
    low, high = floor_ceiling(value, field.scale)
    return low == high
