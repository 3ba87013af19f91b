"""Context managers for named locks: take, renew during the block, free at its end."""

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from lodger.engine.recurrence.duration import parse_duration
from lodger.engine.store.platform.locks import Lock

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


class Block:
    """A block that holds a lock and renews its lease, for ``with`` and ``async with``; None in place of the lock if another holder has it.

    Args:
        locks: of an engine or a client; their verbs are coroutine functions for ``async with``.
    """

    def __init__(
        self, locks: Any, name: str, lease: float | str | timedelta, slot: datetime | None, holder: str | None
    ) -> None:
        self._locks = locks
        self._name, self._lease, self._slot, self._holder = name, lease, slot, holder
        #: By holder: set at the end of its block, and the thread that renews its lease.
        self._held: dict[str, tuple[threading.Event, threading.Thread]] = {}

    def _take(self, mine: str) -> Any:
        """Take or renew the lock for a holder."""
        return self._locks.take(self._name, mine, self._lease, slot=self._slot)

    def _begin(self, mine: str, lock: Lock | None, result_of: Callable[[Any], Lock | None]) -> Lock | None:
        """Begin to renew a lock that was taken; ``result_of`` returns the result of a verb in the thread that renews."""
        over = threading.Event()

        def renew_lease() -> None:
            """Renew the lock's lease until the block ends."""
            while not over.wait(lease_us(self._lease) / 3_000_000):
                try:
                    if result_of(self._take(mine)) is None:
                        _log.warning("the lock %s was lost: its lease has expired", self._name)
                        return
                except Exception:  # noqa: BLE001 - an unreachable database may come back before the lease ends
                    _log.exception("the lock %s could not be renewed", self._name)

        if lock is not None and mine not in self._held:  # within itself, a block has one thread
            renewing = threading.Thread(target=renew_lease, name=f"lodger-lock-{self._name}", daemon=True)
            self._held[mine] = over, renewing
            renewing.start()
        return lock

    def _task(self) -> str:
        """Return the name of the holder, by default this task of this thread."""
        return self._holder or f"{holder_name(None)}-{id(asyncio.current_task())}"

    def __enter__(self) -> Lock | None:
        mine = holder_name(self._holder)
        taken = self._take(mine)
        if asyncio.iscoroutine(taken):
            taken.close()
            raise TypeError("a lock of an asynchronous engine or client is held by async with")
        return self._begin(mine, taken, lambda lock: lock)

    def __exit__(self, *_error: object) -> None:
        mine = holder_name(self._holder)
        if mine in self._held:
            over, renewing = self._held.pop(mine)
            over.set()
            renewing.join()
            self._locks.free(self._name, mine)

    async def __aenter__(self) -> Lock | None:
        mine, loop = self._task(), asyncio.get_running_loop()
        taken = await self._take(mine)
        return self._begin(mine, taken, lambda lock: asyncio.run_coroutine_threadsafe(lock, loop).result())

    async def __aexit__(self, *_error: object) -> None:
        mine = self._task()
        if mine in self._held:
            over, renewing = self._held.pop(mine)
            over.set()
            await asyncio.to_thread(renewing.join)
            await self._locks.free(self._name, mine)
