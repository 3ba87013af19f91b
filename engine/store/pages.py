"""Pages of lists: a bounded number of rows and bytes, and a signed cursor of the next page."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, String

from lodger.engine.core.errors import InputError
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.records import AnyRow, Json, Page, PageOrder
from lodger.engine.store.signing_keys import encode_cursor

T = TypeVar("T")

#: Maximum entries of one page, and maximum bytes of their columns.
MAX_ROWS = 10_000
MAX_BYTES = 8 * 1024 * 1024


class LimitedList(list[T], Generic[T]):
    """Entries of one page.

    Attributes:
        places: the place of each entry in the list.
        more: whether entries may follow.
        end: place where the next page begins; None: after the last entry.
    """

    __slots__ = ("end", "more", "places")

    def __init__(self, entries: Iterable[T], places: list[Json], *, more: bool = False) -> None:
        super().__init__(entries)
        self.places = places
        self.more = more
        self.end: Json = None


def read(
    connection: Connection,
    statement: Select[Any],
    limit: int | None,
    make: Callable[[list[AnyRow]], list[T]],
    keys: Sequence[ColumnElement[Any]],
) -> LimitedList[T]:
    """Read up to ``limit`` rows and MAX_BYTES (all rows if None), and convert them with ``make``.

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
    return LimitedList(make(rows), [[getattr(row, name) for name in names] for row in rows], more=more)


def page(connection: Connection, of: str, found: LimitedList[T], *, falls: bool = True) -> Page[T]:
    """Return entries as a page; the cursor of the next page encodes the place of the last entry.

    Args:
        of: the list with all its filters.
        falls: whether the places fall.
    """
    end = found.places[-1] if found.more and found.end is None else found.end
    following = encode_cursor(connection, of, end) if found.more else None
    return Page(found, following, PageOrder(of, found.places, falls, found.end))
