"""Statements for many rows at once, in as few round trips as the database allows (:mod:`lodger.engine.store.stores`)."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, bindparam, select, true, update
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.store.stores import Driver, PerDriver, driver_of
from lodger.engine.store.stores.features import RowQuery, RowWriter

Row = dict[str, Any]


class UpdateMany:
    """An UPDATE of rows by key, each to values of its own.

    Args:
        keys: column by the name it has in a row, which differs from the column's.
        values: columns that are set from the row.
        fixed: columns that are set alike.
        derived: columns that are set from others of the same row.
    """

    def __init__(
        self,
        table: Table,
        keys: dict[str, str],
        values: tuple[str, ...],
        fixed: dict[str, Any] | None = None,
        derived: dict[str, ColumnElement[Any]] | None = None,
    ) -> None:
        same = (fixed or {}) | (derived or {})

        def each() -> Any:  # noqa: ANN401 - an update
            own = [table.c[name] == bindparam(key) for key, name in keys.items()]
            return update(table).where(*own).values({name: bindparam(name) for name in values} | same)

        def over(given: Any) -> Any:  # noqa: ANN401 - rows
            own = [table.c[name] == given.c[key] for key, name in keys.items()]
            return update(table).where(*own).values({name: given.c[name] for name in values} | same)

        types = {name: table.c[keys.get(name, name)] for name in (*keys, *values)}
        self._writer = PerDriver(lambda driver: driver.row_writer(types, each, over))

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Update these rows; no key may be among them twice."""
        if rows:
            self._writer.of(connection).run(connection, rows)


class WriteMany:
    """A statement that is run for each of many rows.

    Args:
        types: the names of a row, each with a column of its type.
        each: the statement for one row.
        over: builds it for all rows of a table.
    """

    def __init__(
        self, types: Mapping[str, ColumnElement[Any]], each: Any, over: Callable[[Any], Any]  # noqa: ANN401 - any statement
    ) -> None:  # fmt: skip
        self._writer = PerDriver(lambda driver: driver.row_writer(types, lambda: each, over))

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Run it for these rows."""
        if rows:
            self._writer.of(connection).run(connection, rows)


class AskMany:
    """A question about many rows.

    Args:
        types: the names of a row, each with a column of its type.
        over: builds the question about all rows of a table.
    """

    def __init__(self, types: Mapping[str, ColumnElement[Any]], over: Callable[[Any, Driver], Any]) -> None:
        self._query: PerDriver[RowQuery] = PerDriver(
            lambda driver: driver.row_query(types, lambda given: over(given, driver))
        )

    def rows(self, connection: Connection, rows: Sequence[Row], params: Row | None = None) -> list[Any]:
        """Return the answers about these rows. ``params``: bound values beside the rows."""
        return self._query.of(connection).rows(connection, rows, params)


def insert_many(connection: Connection, table: Table, rows: Sequence[Row], *, absent: bool = False) -> None:
    """Insert rows, all with the same columns; with ``absent`` those whose unique keys are free."""
    if not rows:
        return
    # What none of them has is the column's default; most actions have neither params nor steps nor a reason.
    first = rows[0]
    names = tuple(name for name in first if first[name] is not None or any(row[name] is not None for row in rows))
    _insertion(driver_of(connection), table, names, absent).run(connection, rows)


def insert_absent(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert the rows whose unique keys are free; all rows have the same columns."""
    insert_many(connection, table, rows, absent=True)


def add_many(connection: Connection, table: Table, keys: tuple[str, ...], rows: Sequence[Row]) -> None:
    """Insert rows of whole numbers, or add them to those that are there under the same keys."""
    if rows:
        _addition(driver_of(connection), table, keys, tuple(rows[0])).run(connection, rows)


@cache
def _insertion(driver: Driver, table: Table, names: tuple[str, ...], absent: bool) -> RowWriter:
    return _inserting(driver, table, names, lambda made: made.on_conflict_do_nothing() if absent else made)


@cache
def _addition(driver: Driver, table: Table, keys: tuple[str, ...], names: tuple[str, ...]) -> RowWriter:
    def adding(made: Any) -> Any:  # noqa: ANN401 - a database's insert
        more = {name: table.c[name] + made.excluded[name] for name in names if name not in keys}
        return made.on_conflict_do_update(index_elements=list(keys), set_=more)

    return _inserting(driver, table, names, adding)


def _inserting(driver: Driver, table: Table, names: tuple[str, ...], ending: Callable[[Any], Any]) -> RowWriter:
    def each() -> Any:  # noqa: ANN401 - an insert
        return ending(driver.insert(table).values({name: bindparam(name) for name in names}))

    def over(given: Any) -> Any:  # noqa: ANN401 - rows
        # Without a condition SQLite would take ON CONFLICT for the beginning of a join's.
        every = select(*(given.c[name] for name in names)).where(true())
        return ending(driver.insert(table).from_select(list(names), every))

    return driver.row_writer({name: table.c[name] for name in names}, each, over)
