"""What stands at a path of a document, in the words of each database: its class, and its value once per form.

SQLite's values are of any type, so there is one form; PostgreSQL's have one type per column, so a number (or a boolean, as 0
or 1) and a text are two. Each form is NULL for a value of another class: nothing is ever cast that it cannot be cast to,
in whatever order the database evaluates a condition.
"""

from typing import Any

from sqlalchemy import Boolean, Double, Integer, String, case, cast, collate, func, literal, null
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.core import strict_json
from lodger.engine.data.values.fields import BOOLEAN, NULL, NUMBER, OTHER, STRING, TIME, PathField
from lodger.engine.data.values.stored import SQLITE
from lodger.engine.store.schema.data import documents

Clause = ColumnElement[bool]


class SqlitePlace:
    """A path in SQLite's JSON functions."""

    _TYPES = {BOOLEAN: ("true", "false"), NUMBER: ("integer", "real"), STRING: ("text",), TIME: ("text",)}  # noqa: RUF012 - never changed

    def __init__(self, field: PathField) -> None:
        # It is bound, and its parts are plain names.
        self._path = "$." + ".".join(f'"{part}"' for part in field.parts)
        self._time = f'{self._path}."{strict_json.INSTANT}"'
        self._kind = func.json_type(documents.c.body, self._path)

    def missing(self) -> Clause:
        """Whether nothing or null is there."""
        return (self._kind.is_(None)) | (self._kind == "null")

    def held(self, rank: int) -> tuple[Clause, ColumnElement[Any]]:
        """Give whether a value of this class is there, and the value."""
        path = self._time if rank == TIME else self._path
        names = self._TYPES[rank]
        kind = func.json_type(documents.c.body, path)
        return (kind == names[0] if len(names) == 1 else kind.in_(names)), func.json_extract(documents.c.body, path)

    def rank(self) -> ColumnElement[Any]:
        """Give the class: :mod:`lodger.engine.data.values.fields`."""
        return case(
            (self.missing(), NULL),
            (self.held(BOOLEAN)[0], BOOLEAN),
            (self.held(NUMBER)[0], NUMBER),
            (self.held(STRING)[0], STRING),
            ((self._kind == "object") & self.held(TIME)[0], TIME),
            else_=OTHER,
        )

    def values(self) -> list[ColumnElement[Any]]:
        """Give what is compared within the class; NULL for lists, objects and missing values."""
        value = case(
            (self._kind == "object", func.json_extract(documents.c.body, self._time)),
            (self._kind == "array", null()),
            else_=func.json_extract(documents.c.body, self._path),
        )
        return [value]

    def numbers(self) -> ColumnElement[Any]:
        """Give the number as a double, NULL for anything else."""
        there, value = self.held(NUMBER)
        return case((there, value * 1.0), else_=null())


class PostgresPlace:
    """A path in PostgreSQL's jsonb."""

    _TYPES = {BOOLEAN: "boolean", NUMBER: "number", STRING: "string", TIME: "string"}  # noqa: RUF012 - never changed

    def __init__(self, field: PathField) -> None:
        # Names are bound; none begins with a digit, so none can mean an element of a list.
        self._body = cast(documents.c.body, JSONB())
        self._parts = [literal(part, String()) for part in field.parts]
        self._value = func.jsonb_extract_path(self._body, *self._parts)
        self._kind = func.jsonb_typeof(self._value)
        self._instant = [*self._parts, literal(strict_json.INSTANT, String())]
        self._time_kind = func.jsonb_typeof(func.jsonb_extract_path(self._body, *self._instant))

    def missing(self) -> Clause:
        """Whether nothing or null is there."""
        return (self._kind.is_(None)) | (self._kind == "null")

    def held(self, rank: int) -> tuple[Clause, ColumnElement[Any]]:
        """Give whether a value of this class is there, and the value."""
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
        """Give the class: :mod:`lodger.engine.data.values.fields`."""
        return case(
            (self.missing(), NULL),
            (self._kind == "boolean", BOOLEAN),
            (self._kind == "number", NUMBER),
            (self._kind == "string", STRING),
            ((self._kind == "object") & (self._time_kind == "string"), TIME),
            else_=OTHER,
        )

    def values(self) -> list[ColumnElement[Any]]:
        """Give what is compared within the class: a number, a text; both NULL for lists, objects and missing values."""
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
        """Give the number as a double, NULL for anything else."""
        return self.held(NUMBER)[1]


Place = SqlitePlace | PostgresPlace


def place(field: PathField, dialect: str) -> Place:
    """Give a path in a database's words."""
    return SqlitePlace(field) if dialect == SQLITE else PostgresPlace(field)
