"""Context managers for named locks: take, renew during the block, free at its end."""

import asyncio
import logging
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lodger.engine.recurrence.duration import parse_duration
from lodger.engine.store.platform.locks import Lock

if TYPE_CHECKING:
    from lodger.engine.features.locks.operations import Locks
    from lodger.engine.service.operations.declaration import Async, Sync

#: Maximum lease, microseconds; a living holder renews it.
MAX_US = 86_400_000_000
_log = logging.getLogger("lodger.locks")


def holder_name(holder: str | None) -> str:
    """Return the name of the holder, by default this thread of this process of this host."""
    return holder or f"{socket.gethostname()}-{os.getpid()}-{threading.get_ident()}"


def lease_us(lease: float | str | timedelta) -> int:
    """Return a lease in microseconds; a number is in milliseconds."""
    if isinstance(lease, str):
        return parse_duration(lease)
    if isinstance(lease, timedelta):
        return lease // timedelta(microseconds=1)
    # The comparison is false for NaN, too.
    return round(lease * 1000) if abs(lease) < MAX_US else 0


def _third_s(lease: float | str | timedelta) -> float:
    """Return a third of a lease in seconds."""
    return lease_us(lease) / 3_000_000


@contextmanager
def _held(
    locks: "Locks[Sync]", name: str, lease: float | str | timedelta, slot: datetime | None, holder: str | None
) -> Iterator[Lock | None]:
    """Hold a lock during a block of a thread, renewing its lease; yields None if another holder has it."""
    mine = holder_name(holder)
    lock = locks.take(name, mine, lease, slot=slot)
    if lock is None:
        yield None
        return
    over = threading.Event()

    def renew_lease() -> None:
        """Renew the lock's lease until the block ends."""
        while not over.wait(_third_s(lease)):
            try:
                if locks.take(name, mine, lease, slot=slot) is None:
                    _log.warning("the lock %s was lost: its lease has expired", name)
                    return
            except Exception:  # noqa: BLE001 - an unreachable database may come back before the lease ends
                _log.exception("the lock %s could not be renewed", name)

    renewing = threading.Thread(target=renew_lease, name=f"lodger-lock-{name}", daemon=True)
    renewing.start()
    try:
        yield lock
    finally:
        over.set()
        renewing.join()
        locks.free(name, mine)


@asynccontextmanager
async def _held_async(
    locks: "Locks[Async]", name: str, lease: float | str | timedelta, slot: datetime | None, holder: str | None
) -> AsyncIterator[Lock | None]:
    """Hold a lock during a block of asyncio, renewing its lease; yields None if another holder has it."""
    mine = holder or f"{holder_name(None)}-{id(asyncio.current_task())}"
    lock = await locks.take(name, mine, lease, slot=slot)
    if lock is None:
        yield None
        return
    over = asyncio.Event()

    async def renew_lease() -> Any:
        """Renew the lock's lease until the block ends."""
        while True:
            try:
                async with asyncio.timeout(_third_s(lease)):
                    await over.wait()
                    return
            except TimeoutError:
                pass
            try:
                if await locks.take(name, mine, lease, slot=slot) is None:
                    _log.warning("the lock %s was lost: its lease has expired", name)
                    return
            except Exception:  # noqa: BLE001 - as above
                _log.exception("the lock %s could not be renewed", name)

    renewing = asyncio.create_task(renew_lease(), name=f"lodger-lock-{name}")
    try:
        yield lock
    finally:
        over.set()
        await renewing
        await locks.free(name, mine)


class Block:
    """A block that holds a lock, for ``with`` and ``async with``; arguments as for :func:`_held`."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments
        self._sync = ExitStack()
        self._async = AsyncExitStack()

    def __enter__(self) -> Lock | None:
        return self._sync.enter_context(_held(*self._arguments))

    def __exit__(self, *_error: object) -> None:
        self._sync.close()

    async def __aenter__(self) -> Lock | None:
        return await self._async.enter_async_context(_held_async(*self._arguments))

    async def __aexit__(self, *_error: object) -> None:
        await self._async.aclose()
