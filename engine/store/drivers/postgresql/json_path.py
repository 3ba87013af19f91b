"""JSON paths in PostgreSQL's jsonb; see :class:`lodger.engine.store.drivers.features.JsonPath`."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import (
    Boolean,
    Double,
    Integer,
    String,
    case,
    cast,
    collate,
    column,
    func,
    literal,
    literal_column,
    not_,
    null,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, JSONPATH
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.store.drivers.features import BOOLEAN, NUMBER, STRING, TIME, HeldCondition, JsonPath

Clause = ColumnElement[bool]


class PostgresJsonPath(JsonPath):
    """A path in PostgreSQL's jsonb."""

    _TYPES = {BOOLEAN: "boolean", NUMBER: "number", STRING: "string", TIME: "string"}  # noqa: RUF012 - never changed

    def __init__(self, body: ColumnElement[Any], parts: Sequence[str], tag: str) -> None:
        # Names are checked, and bound values; none begins with a digit, so that none is taken for a list index.
        self._names = parts
        self._body = cast(body, JSONB())
        self._parts = [literal(part, String()) for part in parts]
        self._value = func.jsonb_extract_path(self._body, *self._parts)
        self._kind = func.jsonb_typeof(self._value)
        self._tag = tag
        self._instant = [*self._parts, literal(tag, String())]
        self._time_kind = func.jsonb_typeof(func.jsonb_extract_path(self._body, *self._instant))

    def _kind_at(self, parts: Sequence[Any]) -> ColumnElement[Any]:
        """Return the JSON type of the value at a path, as SQL."""
        return func.jsonb_typeof(func.jsonb_extract_path(self._body, *parts))

    def missing(self) -> Clause:
        """Whether the path leads to no value but null, through lists neither."""
        if len(self._names) == 1:
            return self._absent()
        return self._absent() & not_(self._through() & self._led("", lambda value: func.jsonb_typeof(value) != "null"))

    def held(self, rank: int) -> tuple[Clause, ColumnElement[Any]]:
        """Return whether the value has this type rank, and the value."""
        kind = self._time_kind if rank == TIME else self._kind
        there: Clause = kind == self._TYPES[rank]
        return there, case((there, self._form(rank)), else_=null())

    def _form(self, rank: int) -> ColumnElement[Any]:
        """Return the value as the SQL type that values of a rank are compared in."""
        if rank == NUMBER:
            return cast(self._value, Double())
        if rank == BOOLEAN:
            return cast(cast(cast(self._value, Boolean()), Integer()), Double())
        parts = self._instant if rank == TIME else self._parts
        return collate(func.jsonb_extract_path_text(self._body, *parts, type_=String()), "C")

    def values(self) -> list[ColumnElement[Any]]:
        """Return a number and a text; both are NULL for lists, objects and missing values."""
        number = case(
            (self._kind == "number", self._form(NUMBER)), (self._kind == "boolean", self._form(BOOLEAN)), else_=null()
        )
        words = case(
            (self._kind == "string", self._form(STRING)),
            ((self._kind == "object") & (self._time_kind == "string"), self._form(TIME)),
            else_=null(),
        )
        return [number, collate(words, "C")]

    def numbers(self) -> ColumnElement[Any]:
        """Return the number as a double, NULL for other values."""
        return self.held(NUMBER)[1]

    def some(self, rank: int, holds: HeldCondition) -> Clause:
        """Return whether a value that the path leads to through lists satisfies a condition."""

        def element_holds(value: ColumnElement[Any]) -> Clause:
            """Return the condition that one element of the list fulfils the comparison."""
            each = PostgresJsonPath(func.jsonb_build_object(literal_column("'e'"), value), ("e",), self._tag)
            return holds(*each.held(rank))

        return (self._through() | self._kind.is_not_distinct_from("array")) & self._led("[*]", element_holds)

    def _led(self, end: str, asked: Callable[[ColumnElement[Any]], Clause]) -> Clause:
        """Return the condition that a value which the path leads to satisfies another one; a lax path enters lists, one level at each
        name."""
        path = cast("lax $." + ".".join(f'"{part}"' for part in self._names) + end, JSONPATH)
        each = func.jsonb_path_query(self._body, path).table_valued(column("value", JSONB())).render_derived()
        one: ColumnElement[Any] = literal_column("1")
        return select(one).select_from(each).where(asked(each.c.value)).correlate_except(each).exists()
