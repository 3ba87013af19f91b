"""JSON paths in SQLite's JSON functions; see :class:`lodger.engine.store.drivers.features.JsonPath`."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import String, case, column, func, literal_column, null, select
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.store.drivers.features import BOOLEAN, NULL, NUMBER, OTHER, STRING, TIME

Clause = ColumnElement[bool]


class SqliteJsonPath:
    """A path in SQLite's JSON functions."""

    _TYPES = {BOOLEAN: ("true", "false"), NUMBER: ("integer", "real"), STRING: ("text",), TIME: ("text",)}  # noqa: RUF012 - never changed

    def __init__(self, body: ColumnElement[Any], path: Any, tag: str) -> None:
        self._body = body
        self._path = path
        self._tag = tag
        self._time = path + f'."{tag}"'
        self._kind = func.json_type(body, path)

    @classmethod
    def of(cls, body: ColumnElement[Any], parts: Sequence[str], tag: str) -> "SqliteJsonPath":
        """Return a path of plain names; it is a bound value."""
        return cls(body, "$." + ".".join(f'"{part}"' for part in parts), tag)

    def missing(self) -> Clause:
        """Whether the value is missing or null."""
        return (self._kind.is_(None)) | (self._kind == "null")

    def held(self, rank: int) -> tuple[Clause, ColumnElement[Any]]:
        """Return whether the value has this type rank, and the value."""
        path = self._time if rank == TIME else self._path
        names = self._TYPES[rank]
        kind = func.json_type(self._body, path)
        return (kind == names[0] if len(names) == 1 else kind.in_(names)), func.json_extract(self._body, path)

    def rank(self) -> ColumnElement[Any]:
        """Return the type rank: :mod:`lodger.engine.store.drivers.features`."""
        return case(
            (self.missing(), NULL),
            (self.held(BOOLEAN)[0], BOOLEAN),
            (self.held(NUMBER)[0], NUMBER),
            (self.held(STRING)[0], STRING),
            ((self._kind == "object") & self.held(TIME)[0], TIME),
            else_=OTHER,
        )

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

    def some(self, holds: "Callable[[SqliteJsonPath], Clause]") -> Clause:
        """Return whether the value is a list with an element that satisfies a condition."""
        each = func.json_each(self._body, self._path).table_valued(column("fullkey", String()))
        element = SqliteJsonPath(self._body, each.c.fullkey, self._tag)
        one: ColumnElement[Any] = literal_column("1")
        found = select(one).select_from(each).where(holds(element)).correlate_except(each)
        return (self._kind == "array") & found.exists()
