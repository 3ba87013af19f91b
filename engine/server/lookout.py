"""One reader for all actions that single streams show: it asks the ledger once for all of them, and tells whose stream has to look."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.actions.action_stream import Key, Pulse, pulses


@dataclass(eq=False, slots=True)
class Watcher:
    """One stream's eye on one action. ``seen`` is the pulse that its own last look saw; ``moved`` is set when there is another."""

    key: Key
    seen: Pulse | None = None
    over: bool = False
    moved: asyncio.Event = field(default_factory=asyncio.Event)


class Lookout:
    """Every watcher of one process.

    Args:
        read: calls a function with a connection, in a thread.
        wait: returns when it is time to look again.
    """

    def __init__(
        self, read: Callable[[Callable[[Connection], Any]], Awaitable[Any]], wait: Callable[[], Awaitable[None]]
    ) -> None:
        self._read = read
        self._wait = wait
        self._watchers: set[Watcher] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, tenant_id: str, action_id: str) -> Iterator[Watcher]:
        """Keep an eye on an action for the block."""
        watcher = Watcher((tenant_id, action_id))
        self._watchers.add(watcher)
        if self._task is None:
            self._task = asyncio.create_task(self._look(), name="lodger-live-lookout")
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)
            if not self._watchers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _look(self) -> None:
        try:
            while True:
                await self._wait()
                keys = {watcher.key for watcher in self._watchers}
                with suppress(Unavailable):  # a server that is down: at the next look
                    found: dict[Key, Pulse] = await self._read(lambda connection, keys=keys: pulses(connection, keys))  # type: ignore[misc]  # a default binds this round's
                    for watcher in self._watchers:
                        # One that came meanwhile was not asked for, and one whose own first look is under way sees it all.
                        new = watcher.seen is None or watcher.key not in keys
                        if not new and found.get(watcher.key) != watcher.seen:
                            watcher.moved.set()
        finally:
            if self._task is asyncio.current_task():  # not ended because nobody watches: a fault of ours
                self._task = None
                for watcher in self._watchers:
                    watcher.over = True
                    watcher.moved.set()
