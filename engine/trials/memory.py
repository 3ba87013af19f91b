"""Data of a trial without a ledger: collections in memory, empty at first."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import StaticPool

from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.schema.script_data import TABLES

T = TypeVar("T")


class MemoryStore:
    """An in-memory database with Lodger's tables for scripts, initially empty."""

    def __init__(self) -> None:
        self.engine: Engine = create_engine(
            "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
        )
        metadata.create_all(self.engine, tables=list(TABLES))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run a query at once: no disk is involved."""
        with self.engine.connect() as connection:
            return work(connection)

    def close(self) -> None:
        """Close the database; safe to call twice."""
        self.engine.dispose()
