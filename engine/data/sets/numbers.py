"""Keys taken from a database's sequences at the call: a script knows its new row's id before it is written.

An unused number leaves a gap, as is usual with sequences.
"""

from collections.abc import Awaitable, Callable

from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.store.connection.transactions import Transactions
from lodger.engine.store.drivers import driver_of

#: Gives so many keys of a set, or None when its database tells them only when a row is written.
Numbers = Callable[[TableDataset, int], Awaitable[list[int] | None]]


def taken(database: Transactions, rows: TableDataset, many: int) -> list[int] | None:
    """Take keys from the sequence; None if there is none, or values may not be given (GENERATED ALWAYS)."""
    with database.write() as connection:
        return driver_of(connection).take_numbers(connection, rows.origin, rows.key.column.name, many)
