"""Data of a trial without a ledger: collections in memory, empty at first."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import StaticPool

from lodger.engine.capabilities.session import unchecked
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.settings import Settings
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.egress.way_out import WayOut
from lodger.engine.node.executors.attempt import no_addresses
from lodger.engine.node.executors.host_side import HostSide
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


@asynccontextmanager
async def memory_side(settings: Settings) -> AsyncIterator[HostSide]:
    """Open a host side without a ledger: it has no secrets, no people and no other scripts; requests are sent."""
    store = MemoryStore()
    side = HostSide(
        store.read, Datasets(), SystemClock(), people=no_addresses, way_out=WayOut(settings), check_script=unchecked
    )
    try:
        yield side
    finally:
        await side.close()
        store.close()
