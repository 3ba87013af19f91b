"""Pages of lists: a bounded number of rows and bytes, and a signed cursor of the next page."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, String

from lodger.engine.core.errors import InputError
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.list_filter import Filter
from lodger.engine.store.records import AnyRow, Json, Page, PageOrder
from lodger.engine.store.signing_keys import decode_cursor, encode_cursor

T = TypeVar("T")

#: Maximum entries of one page, and maximum bytes of their columns.
MAX_ROWS = 10_000
MAX_BYTES = 8 * 1024 * 1024


def read(
    connection: Connection,
    of: str,
    found: Filter,
    statement: Select[Any],
    make: Callable[[list[AnyRow]], list[T]],
    limit: int | None,
    cursor: str | None,
) -> Page[T]:
    """Return a page of the rows of a statement that match a filter, in its order, converted with ``make``.

    Args:
        of: the list with all its filters.
        limit: maximum number of entries; None for all of them.
        cursor: ``next`` of the page before; None for the first one.

    Raises:
        InputError: cursor_invalid, limit_invalid.
    """
    ordered = found.apply(statement, decode_cursor(connection, of, cursor))
    rows, places, more = read_rows(connection, ordered, limit, found.keys)
    return page(connection, of, make(rows), places, more=more, falls=found.falls)


def read_rows(
    connection: Connection, statement: Select[Any], limit: int | None, keys: Sequence[ColumnElement[Any]]
) -> tuple[list[AnyRow], list[Json], bool]:
    """Read up to ``limit`` rows and MAX_BYTES (all rows if None); return them, the place of each, and whether more may follow.

    Args:
        keys: columns by which the rows are in order: their values are a row's place.

    Raises:
        InputError: limit_invalid.
    """
    driver = driver_of(connection)
    driver.allow_scans(connection)  # a list in any order, of many tenants, is no look-up by key
    names = [f"place_{number}" for number in range(len(keys))]
    statement = statement.add_columns(*(key.label(name) for key, name in zip(keys, names, strict=True)))
    if limit is None:
        rows, more = list(connection.execute(statement).all()), False
    elif 1 <= limit <= MAX_ROWS:
        texts = [place for place, column in enumerate(statement.selected_columns) if isinstance(column.type, String)]
        rows, more = driver.rows_up_to(connection, statement.limit(limit + 1), texts, MAX_BYTES, 1)
        rows, more = rows[:limit], more or len(rows) > limit
    else:
        raise InputError("limit_invalid", limit=limit, maximum=MAX_ROWS)
    return rows, [[getattr(row, name) for name in names] for row in rows], more


def page(
    connection: Connection,
    of: str,
    entries: Iterable[T],
    places: list[Json],
    *,
    more: bool,
    falls: bool,
    end: Json = None,
) -> Page[T]:
    """Return entries as a page; the cursor of the next page encodes the place where that begins.

    Args:
        of: the list with all its filters.
        places: the place of each entry in the list.
        more: whether entries may follow.
        falls: whether the places fall.
        end: place where the next page begins; None: after the last entry.
    """
    following = encode_cursor(connection, of, places[-1] if end is None else end) if more else None
    return Page(entries, following, PageOrder(of, places, falls, end))
