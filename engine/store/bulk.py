"""Statements on rows by key and on many rows, in as few round trips as the database allows (:mod:`lodger.engine.store.drivers`)."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, select, true, update
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.store.drivers import Driver, PerDriver, prepared
from lodger.engine.store.drivers.features import RowStatement

Row = dict[str, Any]


class ManyRows:
    """A statement about many given rows.

    Args:
        types: names of a row's fields, each with a column of its type.
        over: builds the statement for a table of these rows.
    """

    def __init__(self, types: Mapping[str, ColumnElement[Any]], over: Callable[[Any, Driver], Any]) -> None:
        self._statement: PerDriver[RowStatement] = PerDriver(
            lambda driver: driver.row_statement(types, lambda given: over(given, driver))
        )

    def rows(self, connection: Connection, rows: Sequence[Row], params: Row | None = None) -> list[Any]:
        """Execute the statement for these rows; return the result rows of a query. ``params``: bound values beside the rows."""
        return self._statement.of(connection).rows(connection, rows, params) if rows else []


def update_many(
    table: Table,
    keys: dict[str, str],
    values: tuple[str, ...],
    fixed: dict[str, Any] | None = None,
    derived: dict[str, ColumnElement[Any]] | None = None,
) -> ManyRows:
    """Return the UPDATE of rows by key, each row with its own values; each key may occur only once.

    Args:
        keys: column name by its name in a row; the two differ.
        values: columns that are set from the row.
        fixed: columns that are set to the same value in every row.
        derived: columns that are computed from other columns of the row.
    """

    def update_given(given: Any, _driver: Driver) -> Any:
        """Return the statement that updates the rows of a table of given values."""
        own = [table.c[name] == given.c[key] for key, name in keys.items()]
        own_values = {name: given.c[name] for name in values}
        return update(table).where(*own).values(own_values | (fixed or {}) | (derived or {}))

    return ManyRows({name: table.c[keys.get(name, name)] for name in (*keys, *values)}, update_given)


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
    _insertion(table, names, absent).rows(connection, rows)


def update_row(connection: Connection, table: Table, /, *key: object, **values: Any) -> None:
    """Update the row with this primary key; a server does so with the next statement that is waited for."""
    mine = (column == part for column, part in zip(table.primary_key.columns, key, strict=True))
    prepared.write(connection, update(table).where(*mine).values(values))


def add_many(connection: Connection, table: Table, keys: tuple[str, ...], rows: Sequence[Row]) -> None:
    """Insert rows of integers, or add them to existing rows with the same keys."""
    if rows:
        _addition(table, keys, tuple(rows[0])).rows(connection, rows)


@cache
def _insertion(table: Table, names: tuple[str, ...], absent: bool) -> ManyRows:
    """Return the INSERT of new rows; with ``absent``, existing rows are left alone."""
    return _inserting(table, names, lambda made: made.on_conflict_do_nothing() if absent else made)


@cache
def _addition(table: Table, keys: tuple[str, ...], names: tuple[str, ...]) -> ManyRows:
    """Return the statement that adds amounts to rows, and inserts rows that do not exist."""

    def adding_on_conflict(made: Any) -> Any:
        """Return an INSERT that adds its numbers to those of an existing row."""
        more = {name: table.c[name] + made.excluded[name] for name in names if name not in keys}
        return made.on_conflict_do_update(index_elements=list(keys), set_=more)

    return _inserting(table, names, adding_on_conflict)


def _inserting(table: Table, names: tuple[str, ...], ending: Callable[[Any], Any]) -> ManyRows:
    """Return the INSERT of the given rows, with an ending for those that exist."""

    def insert_given(given: Any, driver: Driver) -> Any:
        """Return the statement that inserts the rows of a table of given values."""
        # Without a condition SQLite would parse ON CONFLICT as the start of a join's condition.
        every = select(*(given.c[name] for name in names)).where(true())
        return ending(driver.insert(table).from_select(list(names), every))

    return ManyRows({name: table.c[name] for name in names}, insert_given)
