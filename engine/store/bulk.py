"""Statements on rows by key and on many rows, in as few round trips as the database allows (:mod:`lodger.engine.store.drivers`)."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, bindparam, select, true, update
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.store.drivers import Driver, PerDriver, driver_of, prepared
from lodger.engine.store.drivers.features import RowQuery, RowWriter

Row = dict[str, Any]


class WriteMany:
    """A statement that is run for each of many rows.

    Args:
        types: names of a row's fields, each with a column of its type.
        each: the statement for one row.
        over: builds the statement for a table of rows.
    """

    def __init__(
        self, types: Mapping[str, ColumnElement[Any]], each: Any, over: Callable[[Any], Any]
    ) -> None:  # fmt: skip
        self._writer = PerDriver(lambda driver: driver.row_writer(types, lambda: each, over))

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Write these rows by the statement."""
        if rows:
            self._writer.of(connection).run(connection, rows)


class UpdateMany(WriteMany):
    """UPDATE of rows by key, each row with its own values; each key may occur only once.

    Args:
        keys: column name by its name in a row; the two differ.
        values: columns that are set from the row.
        fixed: columns that are set to the same value in every row.
        derived: columns that are computed from other columns of the row.
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

        own = [table.c[name] == bindparam(key) for key, name in keys.items()]
        each = update(table).where(*own).values({name: bindparam(name) for name in values} | same)

        def over(given: Any) -> Any:
            """Return the statement that updates the rows of a table of given values."""
            own = [table.c[name] == given.c[key] for key, name in keys.items()]
            return update(table).where(*own).values({name: given.c[name] for name in values} | same)

        types = {name: table.c[keys.get(name, name)] for name in (*keys, *values)}
        super().__init__(types, each, over)


class QueryMany:
    """A query about many rows.

    Args:
        types: names of a row's fields, each with a column of its type.
        over: builds the query about a table of rows.
    """

    def __init__(self, types: Mapping[str, ColumnElement[Any]], over: Callable[[Any, Driver], Any]) -> None:
        self._query: PerDriver[RowQuery] = PerDriver(
            lambda driver: driver.row_query(types, lambda given: over(given, driver))
        )

    def rows(self, connection: Connection, rows: Sequence[Row], params: Row | None = None) -> list[Any]:
        """Return the result rows for these rows. ``params``: bound values beside the rows."""
        return self._query.of(connection).rows(connection, rows, params)


def insert_many(connection: Connection, table: Table, rows: Sequence[Row], *, absent: bool = False) -> None:
    """Insert rows, all with the same columns; with ``absent`` skip rows with existing unique keys."""
    if not rows:
        return
    # A column that is None in every row is left to its default: most actions have neither params nor steps nor a
    # reason.
    first, others = rows[0], rows[1:]
    names = tuple([
        name
        for name, value in first.items()
        if value is not None or (others and any(row[name] is not None for row in others))
    ])  # fmt: skip
    _insertion(driver_of(connection), table, names, absent).run(connection, rows)


def insert_absent(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows, all with the same columns; skip rows with existing unique keys."""
    insert_many(connection, table, rows, absent=True)


def update_row(connection: Connection, table: Table, /, *key: object, **values: Any) -> None:
    """Update the row with this primary key; a server does so with the next statement that is waited for."""
    mine = (column == part for column, part in zip(table.primary_key.columns, key, strict=True))
    prepared.write(connection, update(table).where(*mine).values(values))


def add_many(connection: Connection, table: Table, keys: tuple[str, ...], rows: Sequence[Row]) -> None:
    """Insert rows of integers, or add them to existing rows with the same keys."""
    if rows:
        _addition(driver_of(connection), table, keys, tuple(rows[0])).run(connection, rows)


@cache
def _insertion(driver: Driver, table: Table, names: tuple[str, ...], absent: bool) -> RowWriter:
    """Return a writer of new rows; with ``absent``, existing rows are left alone."""
    return _inserting(driver, table, names, lambda made: made.on_conflict_do_nothing() if absent else made)


@cache
def _addition(driver: Driver, table: Table, keys: tuple[str, ...], names: tuple[str, ...]) -> RowWriter:
    """Return a writer that adds amounts to rows, and inserts rows that do not exist."""

    def adding_on_conflict(made: Any) -> Any:
        """Return an INSERT that adds its numbers to those of an existing row."""
        more = {name: table.c[name] + made.excluded[name] for name in names if name not in keys}
        return made.on_conflict_do_update(index_elements=list(keys), set_=more)

    return _inserting(driver, table, names, adding_on_conflict)


def _inserting(driver: Driver, table: Table, names: tuple[str, ...], ending: Callable[[Any], Any]) -> RowWriter:
    """Return a writer of rows by one statement for all, or one for each where the driver needs it."""

    def insert_one() -> Any:
        """Return the statement that inserts one row."""
        return ending(driver.insert(table).values({name: bindparam(name) for name in names}))

    def insert_rows(given: Any) -> Any:
        """Return the statement that inserts the rows of a table of given values."""
        # Without a condition SQLite would parse ON CONFLICT as the start of a join's condition.
        every = select(*(given.c[name] for name in names)).where(true())
        return ending(driver.insert(table).from_select(list(names), every))

    return driver.row_writer({name: table.c[name] for name in names}, insert_one, insert_rows)
