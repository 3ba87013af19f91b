"""Text compared by its characters and nothing else, whatever the column's type or collation thinks is alike.

A column may be ``citext``, or have a collation that ignores case or accents, without its SQLAlchemy type saying so: then
``=`` finds the rows of tenant ``Acme`` for tenant ``acme``. Cast and collated it cannot.
"""

from typing import Any

from sqlalchemy import Enum, String, and_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.visitors import InternalTraversal


class Bytewise(ColumnElement[str]):
    """A text column as its code points; equal, ordered and grouped alike on both databases."""

    inherit_cache = True
    _traverse_internals = [("column", InternalTraversal.dp_clauseelement)]  # noqa: RUF012 - SQLAlchemy's own form

    def __init__(self, column: ColumnElement[Any]) -> None:
        self.column = column
        self.type = String()

    @property
    def _from_objects(self) -> Any:
        return self.column._from_objects


@compiles(Bytewise, "sqlite")
def _sqlite(element: Bytewise, compiler: Any, **options: Any) -> str:
    return f"({compiler.process(element.column, **options)} COLLATE BINARY)"


@compiles(Bytewise, "postgresql")
def _postgresql(element: Bytewise, compiler: Any, **options: Any) -> str:
    return f'(CAST({compiler.process(element.column, **options)} AS TEXT) COLLATE "C")'


def same_text(column: ColumnElement[Any], bound: ColumnElement[Any]) -> ColumnElement[bool]:
    """Give the condition that a text column holds just this; the column's own ``=`` beside it lets its index be used."""
    exact: ColumnElement[bool] = Bytewise(column) == bound
    return exact if isinstance(column.type, Enum) else and_(column == bound, exact)
