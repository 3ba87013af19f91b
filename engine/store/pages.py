"""Pages of lists: a bounded number of rows and bytes, and a signed cursor of the next page."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Select, String

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
        more: whether entries may follow.
        end: place where the next page begins; None: after the last entry.
        place_of: returns the place of an entry, if it is not that of the list's filter.
    """

    __slots__ = ("end", "more", "place_of")

    def __init__(self, entries: Iterable[T] = (), *, more: bool = False) -> None:
        super().__init__(entries)
        self.more = more
        self.end: Json = None
        self.place_of: Callable[[T], Json] | None = None


def read(
    connection: Connection, statement: Select[Any], limit: int | None, make: Callable[[list[AnyRow]], list[T]]
) -> LimitedList[T]:
    """Read up to ``limit`` rows and MAX_BYTES (all rows if None), and convert them with ``make``.

    Raises:
        InputError: limit_invalid.
    """
    driver = driver_of(connection)
    driver.allow_scans(connection)  # a list in any order, of many tenants, is no look-up by key
    if limit is None:
        return LimitedList(make(list(connection.execute(statement).all())))
    if not 1 <= limit <= MAX_ROWS:
        raise InputError("limit_invalid", limit=limit, maximum=MAX_ROWS)
    texts = [place for place, column in enumerate(statement.selected_columns) if isinstance(column.type, String)]
    rows, more = driver.rows_up_to(connection, statement.limit(limit + 1), texts, MAX_BYTES, 1)
    return LimitedList(make(rows[:limit]), more=more or len(rows) > limit)


def page(
    connection: Connection, of: str, found: LimitedList[T], place_of: Callable[[T], Json], *, falls: bool = True
) -> Page[T]:
    """Return entries as a page; ``place_of(entry)`` is the position that the cursor of the next page encodes.

    Args:
        of: the list with all its filters.
        falls: whether the positions fall.
    """
    place_of = found.place_of or place_of
    end = found.end
    if found.more and end is None:
        end = place_of(found[-1])
    following = encode_cursor(connection, of, end) if found.more else None
    return Page(found, following, PageOrder(of, place_of, falls, found.end))
