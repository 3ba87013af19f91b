"""JSON paths in PostgreSQL's jsonb; see :class:`lodger.engine.store.drivers.features.JsonPath`."""

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, JSONPATH

from lodger.engine.store.drivers.features import BOOLEAN, NUMBER, STRING, TIME, HeldCondition, JsonPath

Clause = sa.ColumnElement[bool]


class PostgresJsonPath(JsonPath):
    """A path in PostgreSQL's jsonb."""

    _TYPES = {BOOLEAN: "boolean", NUMBER: "number", STRING: "string", TIME: "string"}  # noqa: RUF012 - never changed

    def __init__(self, body: sa.ColumnElement[Any], parts: Sequence[str], tag: str) -> None:
        # Names are checked, and bound values; none begins with a digit, so that none is taken for a list index.
        self._names = parts
        self._body = sa.cast(body, JSONB())
        self._parts = [sa.literal(part, sa.String()) for part in parts]
        self._value = sa.func.jsonb_extract_path(self._body, *self._parts)
        self._kind = sa.func.jsonb_typeof(self._value)
        self._tag = tag
        self._instant = [*self._parts, sa.literal(tag, sa.String())]
        self._time_kind = sa.func.jsonb_typeof(sa.func.jsonb_extract_path(self._body, *self._instant))

    def _kind_at(self, parts: Sequence[Any]) -> sa.ColumnElement[Any]:
        """Return the JSON type of the value at a path, as SQL."""
        return sa.func.jsonb_typeof(sa.func.jsonb_extract_path(self._body, *parts))

    def missing(self) -> Clause:
        """Whether the path leads to no value but null, through lists neither."""
        if len(self._names) == 1:
            return self._absent()
        return self._absent() & sa.not_(
            self._through() & self._led("", lambda value: sa.func.jsonb_typeof(value) != "null")
        )

    def held(self, rank: int) -> tuple[Clause, sa.ColumnElement[Any]]:
        """Return whether the value has this type rank, and the value."""
        kind = self._time_kind if rank == TIME else self._kind
        there: Clause = kind == self._TYPES[rank]
        return there, sa.case((there, self._form(rank)), else_=sa.null())

    def _form(self, rank: int) -> sa.ColumnElement[Any]:
        """Return the value as the SQL type that values of a rank are compared in."""
        if rank == NUMBER:
            return sa.cast(self._value, sa.Double())
        if rank == BOOLEAN:
            return sa.cast(sa.cast(sa.cast(self._value, sa.Boolean()), sa.Integer()), sa.Double())
        parts = self._instant if rank == TIME else self._parts
        return sa.collate(sa.func.jsonb_extract_path_text(self._body, *parts, type_=sa.String()), "C")

    def values(self) -> list[sa.ColumnElement[Any]]:
        """Return a number and a text; both are NULL for lists, objects and missing values."""
        number = sa.case(
            (self._kind == "number", self._form(NUMBER)),
            (self._kind == "boolean", self._form(BOOLEAN)),
            else_=sa.null(),
        )
        words = sa.case(
            (self._kind == "string", self._form(STRING)),
            ((self._kind == "object") & (self._time_kind == "string"), self._form(TIME)),
            else_=sa.null(),
        )
        return [number, sa.collate(words, "C")]

    def numbers(self) -> sa.ColumnElement[Any]:
        """Return the number as a double, NULL for other values."""
        return self.held(NUMBER)[1]

    def some(self, rank: int, holds: HeldCondition) -> Clause:
        """Return whether a value that the path leads to through lists satisfies a condition."""

        def element_holds(value: sa.ColumnElement[Any]) -> Clause:
            """Return the condition that one element of the list fulfils the comparison."""
            each = PostgresJsonPath(sa.func.jsonb_build_object(sa.literal_column("'e'"), value), ("e",), self._tag)
            return holds(*each.held(rank))

        return (self._through() | self._kind.is_not_distinct_from("array")) & self._led("[*]", element_holds)

    def _led(self, end: str, asked: Callable[[sa.ColumnElement[Any]], Clause]) -> Clause:
        """Return the condition that a value which the path leads to satisfies another one; a lax path enters lists, one level at each
        name."""
        path = sa.cast("lax $." + ".".join(f'"{part}"' for part in self._names) + end, JSONPATH)
        each = sa.func.jsonb_path_query(self._body, path).table_valued(sa.column("value", JSONB())).render_derived()
        one: sa.ColumnElement[Any] = sa.literal_column("1")
        return sa.select(one).select_from(each).where(asked(each.c.value)).correlate_except(each).exists()
