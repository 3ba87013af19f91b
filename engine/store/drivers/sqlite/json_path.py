"""JSON paths in SQLite's JSON functions; see :class:`lodger.engine.store.drivers.features.JsonPath`."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import (
    String,
    TableValuedAlias,
    case,
    func,
    literal,
    literal_column,
    not_,
    null,
    select,
    true,
)
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.store.drivers.features import BOOLEAN, NUMBER, STRING, TIME, HeldCondition, JsonPath

Clause = ColumnElement[bool]


class SqliteJsonPath(JsonPath):
    """A path in SQLite's JSON functions."""

    _TYPES = {BOOLEAN: ("true", "false"), NUMBER: ("integer", "real"), STRING: ("text",), TIME: ("text",)}  # noqa: RUF012 - never changed

    def __init__(self, body: ColumnElement[Any], parts: Sequence[str], tag: str) -> None:
        self._body = body
        self._parts = parts
        # Names are checked, and paths bound values.
        self._path = "$." + ".".join(f'"{part}"' for part in parts)
        self._tag = f'."{tag}"'
        self._time = self._path + self._tag
        self._kind = func.json_type(body, self._path)

    def _kind_at(self, parts: Sequence[Any]) -> ColumnElement[Any]:
        """Return the JSON type of the value at a path, as SQL."""
        return func.json_type(self._body, "$." + ".".join(f'"{part}"' for part in parts))

    def missing(self) -> Clause:
        """Whether the path leads to no value but null, through lists neither."""
        if len(self._parts) == 1:
            return self._absent()
        return self._absent() & not_(self._through() & self._elements(lambda each: each.c.type != "null", spread=False))

    def held(self, rank: int) -> tuple[Clause, ColumnElement[Any]]:
        """Return whether the value has this type rank, and the value."""
        path = self._time if rank == TIME else self._path
        return self._is(func.json_type(self._body, path), rank), func.json_extract(self._body, path)

    def _is(self, kind: ColumnElement[Any], rank: int) -> Clause:
        """Return the condition that a JSON type belongs to a type rank."""
        names = self._TYPES[rank]
        return kind == names[0] if len(names) == 1 else kind.in_(names)

    def values(self) -> list[ColumnElement[Any]]:
        """Return the value; NULL for lists, objects and missing values."""
        value = case(
            (self._kind == "object", func.json_extract(self._body, self._time)),
            (self._kind == "array", null()),
            else_=func.json_extract(self._body, self._path),
        )
        return [value]

    def numbers(self) -> ColumnElement[Any]:
        """Return the number as a double, NULL for other values."""
        there, value = self.held(NUMBER)
        return case((there, value * 1.0), else_=null())

    def some(self, rank: int, holds: HeldCondition) -> Clause:
        """Return whether a value that the path leads to through lists satisfies a condition."""

        def element_holds(each: TableValuedAlias) -> Clause:
            """Return the condition that one element of the list fulfils the comparison."""
            if rank != TIME:
                return holds(self._is(each.c.type, rank), each.c.atom)
            text = case((each.c.type == "object", each.c.value), else_="{}")
            return holds(
                self._is(func.json_type(text, "$" + self._tag), rank), func.json_extract(text, "$" + self._tag)
            )

        return (self._through() | (self._kind == "array")) & self._elements(element_holds, spread=True)

    def _elements(self, asked: Callable[[TableValuedAlias], Clause], *, spread: bool) -> Clause:
        """Return the condition that a value which the path leads to through lists satisfies another one; ``spread``: also the elements
        of a list at its end."""
        text: ColumnElement[Any] = self._body
        steps: list[TableValuedAlias] = []
        source: Any = None
        for at, part in enumerate(self._parts, 1):
            path = f'$."{part}"'
            kind, value = func.json_type(text, path), func.json_extract(text, path)
            # json_extract has no booleans; the names of their types are their JSON.
            quoted = case((kind.in_(("true", "false")), kind), else_=func.json_quote(value))
            wrapped = literal("[", String()) + quoted + "]"
            listed = case((kind == "array", value), else_=wrapped)
            each = func.json_each(listed if spread or at < len(self._parts) else wrapped)
            steps.append(each.table_valued("value", "type", "atom", name=f"at{at}"))
            source = steps[-1] if source is None else source.join(steps[-1], true())
            text = case((steps[-1].c.type == "object", steps[-1].c.value), else_="{}")
        one: ColumnElement[Any] = literal_column("1")
        return select(one).select_from(source).where(asked(steps[-1])).correlate_except(*steps).exists()
