"""SQL constructs and column types that each database has in its own way, for statements and tables that are declared once."""

from typing import Any

from sqlalchemy import BigInteger, Enum, Integer, String, and_, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.sql.visitors import InternalTraversal

from lodger.engine.store.stores import Driver, driver_named

#: UUIDv7: 36 characters in SQLite, 16 bytes in PostgreSQL, ``str`` in Python on both.
Id = String(36).with_variant(postgresql.UUID(as_uuid=False), "postgresql")
#: A 64-bit key that the database numbers: SQLite numbers only a key of type INTEGER.
Number = BigInteger().with_variant(Integer, "sqlite")


def code_points(length: int) -> String:
    """Return a text type that is ordered by code point."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def partial(condition: Any) -> dict[str, Any]:  # noqa: ANN401 - SQL text or a condition
    """Return the arguments of an index over the rows that satisfy a condition."""
    where = text(condition) if isinstance(condition, str) else condition
    return {"sqlite_where": where, "postgresql_where": where}


def _driver(compiler: Any) -> Driver:  # noqa: ANN401 - SQLAlchemy's compilers share no public type
    found = driver_named(compiler.dialect.name)
    if found is None:
        raise LookupError(f"no driver for {compiler.dialect.name}")
    return found


class Bytewise(ColumnElement[str]):
    """A text column as its code points; equal, ordered and grouped alike on every database.

    A column may be ``citext``, or have a collation that ignores case or accents, without its SQLAlchemy type saying so: then
    ``=`` finds the rows of tenant ``Acme`` for tenant ``acme``.
    """

    inherit_cache = True
    _traverse_internals = [("column", InternalTraversal.dp_clauseelement)]  # noqa: RUF012 - SQLAlchemy's own form

    def __init__(self, column: ColumnElement[Any]) -> None:
        self.column = column
        self.type = String()

    @property
    def _from_objects(self) -> Any:  # noqa: ANN401 - SQLAlchemy's own
        return self.column._from_objects


@compiles(Bytewise)
def _bytewise(element: Bytewise, compiler: Any, **options: Any) -> str:  # noqa: ANN401 - a construct of SQLAlchemy
    return _driver(compiler).bytewise_sql(compiler.process(element.column, **options))


def same_text(column: ColumnElement[Any], bound: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that a text column holds just this; the column's own ``=`` beside it lets its index be used."""
    exact: ColumnElement[bool] = Bytewise(column) == bound
    return exact if isinstance(column.type, Enum) else and_(column == bound, exact)


class transaction_number(GenericFunction[int]):  # noqa: N801 - it is SQL's
    """The number of the present transaction; the same for all where one transaction writes at a time."""

    type = BigInteger()
    inherit_cache = True


@compiles(transaction_number)
def _transaction_number(_element: object, compiler: Any, **_options: Any) -> str:  # noqa: ANN401 - a construct of SQLAlchemy
    return _driver(compiler).transaction_number_sql()
