"""Pages of lists: so many rows, and so many bytes, as were asked for, with a signed cursor to go on from."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Select

from lodger.engine.core.errors import InputError
from lodger.engine.store.records import AnyRow, Json, Page
from lodger.engine.store.signing_keys import cursor

T = TypeVar("T")

#: Most that one page may hold: entries, and letters of all their columns. A tenant's results are as long as it makes them.
MAX_ROWS = 10_000
MAX_CHARACTERS = 8 * 1024 * 1024
#: Rows that are fetched from the database at once.
_TOGETHER = 50


class Cut(list[T], Generic[T]):
    """Entries that were read; ``more`` says whether others come after them."""

    __slots__ = ("more",)

    def __init__(self, entries: Iterable[T] = (), *, more: bool = False) -> None:
        super().__init__(entries)
        self.more = more


def read(
    connection: Connection, statement: Select[Any], limit: int | None, make: Callable[[list[AnyRow]], list[T]]
) -> Cut[T]:
    """Read at most so many rows, all of them when ``limit`` is None, and make entries of them.

    Raises:
        InputError: limit_invalid.
    """
    if limit is None:
        return Cut(make(list(connection.execute(statement).all())))
    if not 1 <= limit <= MAX_ROWS:
        raise InputError(
            "limit_invalid", f"a page cannot have {limit} entries", why=f"it has 1 to {MAX_ROWS}", fix="say another"
        )
    rows: list[AnyRow] = []
    characters, more = 0, False
    with connection.execute(statement.limit(limit + 1), execution_options={"yield_per": _TOGETHER}) as found:
        for row in found:
            if len(rows) == limit or (rows and characters > MAX_CHARACTERS):
                more = True
                break
            rows.append(row)
            characters += sum(len(cell) for cell in row if isinstance(cell, str))
    return Cut(make(rows), more=more)


def page(connection: Connection, of: str, found: Cut[T], place_of: Callable[[T], Json]) -> Page[T]:
    """Give what was read as a page; ``place_of`` an entry is where the next page begins behind it.

    Args:
        of: which list it is, with everything that filters it.
    """
    return Page(found, cursor(connection, of, place_of(found[-1])) if found.more else None)
