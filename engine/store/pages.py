"""Pages of lists: a bounded number of rows and characters, and a signed cursor of the next page."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Select, String, Text, cast, func, literal, or_, select

from lodger.engine.core.errors import InputError
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.records import AnyRow, Json, Page
from lodger.engine.store.signing_keys import encode_cursor

T = TypeVar("T")

#: Maximum entries of one page, and maximum characters of all their columns.
MAX_ROWS = 10_000
MAX_CHARACTERS = 8 * 1024 * 1024
#: Rows that are fetched from the database at once.
_FETCH_ROWS = 50


class LimitedList(list[T], Generic[T]):
    """Entries of one page; ``more`` is true if entries follow."""

    __slots__ = ("more",)

    def __init__(self, entries: Iterable[T] = (), *, more: bool = False) -> None:
        super().__init__(entries)
        self.more = more


def read(
    connection: Connection, statement: Select[Any], limit: int | None, make: Callable[[list[AnyRow]], list[T]]
) -> LimitedList[T]:
    """Read up to ``limit`` rows and MAX_CHARACTERS (all rows if None), and convert them with ``make``.

    Raises:
        InputError: limit_invalid.
    """
    if limit is None:
        return LimitedList(make(list(connection.execute(statement).all())))
    if not 1 <= limit <= MAX_ROWS:
        raise InputError("limit_invalid", limit=limit, maximum=MAX_ROWS)
    if driver_of(connection).is_remote:
        return _read_at_once(connection, statement, limit, make)
    rows: list[AnyRow] = []
    characters, more = 0, False
    with connection.execute(statement.limit(limit + 1), execution_options={"yield_per": _FETCH_ROWS}) as found:
        for row in found:
            if len(rows) == limit or (rows and characters > MAX_CHARACTERS):
                more = True
                break
            rows.append(row)
            characters += sum(len(cell) for cell in row if isinstance(cell, str))
    return LimitedList(make(rows), more=more)


def _read_at_once(
    connection: Connection, statement: Select[Any], limit: int, make: Callable[[list[AnyRow]], list[T]]
) -> LimitedList[T]:
    """Let the server add up the characters: to fetch a few rows at a time would take a round trip each."""
    some = statement.limit(limit + 1).subquery("some")
    sizes = [func.coalesce(func.length(cast(column, Text)), 0) for column in some.c if isinstance(column.type, String)]
    before = func.sum(sum(sizes, literal(0))).over(rows=(None, -1))
    extra = (
        before.label("lodger_before"),
        func.row_number().over().label("lodger_n"),
        func.count().over().label("lodger_of"),
    )
    summed = select(*some.c, *extra).subquery("summed")
    fits = or_(summed.c.lodger_n == 1, summed.c.lodger_before <= MAX_CHARACTERS)
    found = list(connection.execute(select(*summed.c).where(fits).order_by(summed.c.lodger_n)))
    more = bool(found) and (len(found) > limit or found[0].lodger_of > len(found))
    return LimitedList(make(found[:limit]), more=more)


def page(connection: Connection, of: str, found: LimitedList[T], place_of: Callable[[T], Json]) -> Page[T]:
    """Return entries as a page; ``place_of(entry)`` is the position that the cursor of the next page encodes.

    Args:
        of: the list with all its filters.
    """
    return Page(found, encode_cursor(connection, of, place_of(found[-1])) if found.more else None)
