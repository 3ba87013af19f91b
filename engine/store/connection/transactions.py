"""The interface of an open database: read snapshots and write transactions."""

from contextlib import AbstractContextManager
from typing import Protocol

from sqlalchemy import Connection


class Transactions(Protocol):
    """The ledger's database (:class:`lodger.engine.store.connection.database.Database`), or one of the platform's."""

    def read(self) -> AbstractContextManager[Connection]:
        """Open one consistent snapshot."""

    def write(self) -> AbstractContextManager[Connection]:
        """Open one transaction that may write."""
