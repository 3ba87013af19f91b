"""A database in memory with Lodger's tables for scripts and nothing else: what ``lodger exec`` runs on."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import StaticPool

from lodger.engine.store.schema.metadata import metadata
from lodger.engine.store.schema.script_data import TABLES

T = TypeVar("T")


class MemoryStore:
    """Collections, keys and outbox of one process; empty at first, gone with it."""

    def __init__(self) -> None:
        self.engine: Engine = create_engine(
            "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
        )
        metadata.create_all(self.engine, tables=list(TABLES))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Answer a question; at once, for nothing here waits for a disk."""
        with self.engine.connect() as connection:
            return work(connection)

    def close(self) -> None:
        """Let go of it; safe to call twice."""
        self.engine.dispose()
