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
    null,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.store.drivers.features import BOOLEAN, NULL, NUMBER, OTHER, STRING, TIME

Clause = ColumnElement[bool]


class PostgresJsonPath:
    """A path in PostgreSQL's jsonb."""

    _TYPES = {BOOLEAN: "boolean", NUMBER: "number", STRING: "string", TIME: "string"}  # noqa: RUF012 - never changed

    def __init__(self, body: ColumnElement[Any], parts: Sequence[str], tag: str) -> None:
        # Names are bound values; none begins with a digit, so that none is taken for a list index.
        self._body = cast(body, JSONB())
        self._parts = [literal(part, String()) for part in parts]
        self._value = func.jsonb_extract_path(self._body, *self._parts)
        self._kind = func.jsonb_typeof(self._value)
        self._tag = tag
        self._instant = [*self._parts, literal(tag, String())]
        self._time_kind = func.jsonb_typeof(func.jsonb_extract_path(self._body, *self._instant))

    def missing(self) -> Clause:
        """Whether the value is missing or null."""
        return (self._kind.is_(None)) | (self._kind == "null")

    def held(self, rank: int) -> tuple[Clause, ColumnElement[Any]]:
        """Return whether the value has this type rank, and the value."""
        kind = self._time_kind if rank == TIME else self._kind
        there: Clause = kind == self._TYPES[rank]
        return there, case((there, self._form(rank)), else_=null())

    def _form(self, rank: int) -> ColumnElement[Any]:
        if rank == NUMBER:
            return cast(self._value, Double())
        if rank == BOOLEAN:
            return cast(cast(cast(self._value, Boolean()), Integer()), Double())
        parts = self._instant if rank == TIME else self._parts
        return collate(func.jsonb_extract_path_text(self._body, *parts, type_=String()), "C")

    def rank(self) -> ColumnElement[Any]:
        """Return the type rank: :mod:`lodger.engine.store.drivers.features`."""
        return case(
            (self.missing(), NULL),
            (self._kind == "boolean", BOOLEAN),
            (self._kind == "number", NUMBER),
            (self._kind == "string", STRING),
            ((self._kind == "object") & (self._time_kind == "string"), TIME),
            else_=OTHER,
        )

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

    def some(self, holds: "Callable[[PostgresJsonPath], Clause]") -> Clause:
        """Return whether the value is a list with an element that satisfies a condition."""
        listed = case((self._kind == "array", self._value), else_=cast(literal_column("'[]'"), JSONB()))
        each = func.jsonb_array_elements(listed).table_valued(column("value", JSONB()))
        element = PostgresJsonPath(func.jsonb_build_object(literal_column("'e'"), each.c.value), ("e",), self._tag)
        one: ColumnElement[Any] = literal_column("1")
        found = select(one).select_from(each).where(holds(element)).correlate_except(each)
        return found.exists()
