"""The API as a service: engine's app, its socket, and what it has to clear up now and then. Started and stopped like a node."""

import asyncio
from contextlib import suppress

from anyio import to_thread

from lodger.engine.server import process
from lodger.engine.server.app import Api
from lodger.engine.server.server import Server
from lodger.engine.server.sieve import Sieve, looked
from lodger.engine.core.errors import Unavailable
from lodger.engine.store.platform import idempotency
from lodger.engine.sync import Engine

#: Seconds between two looks at what is too old to keep.
CLEAR_S = 600.0


class Service:
    """One process's API. ``start`` and ``stop`` are safe to call twice; ``url`` is where it answers.

    Args:
        own_process: the process does nothing else, and is set up for it when the service starts; large bodies are looked at in another.
    """

    def __init__(self, engine: Engine, *, own_process: bool = False) -> None:
        self._engine = engine
        self._own_process = own_process
        self._sieve = Sieve() if own_process else None
        self.api = Api(engine, self._sieve.looked if self._sieve else looked)
        self._server = Server(self.api.app, engine.books.settings, self.api.known, self.api.full)
        self._clearing: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Give the address to ask at."""
        return self._server.url

    async def start(self) -> None:
        """Listen.

        Raises:
            InputError, Unavailable: as :meth:`lodger.engine.server.server.Server.start`.
        """
        await self._server.start()
        if self._own_process:
            process.settle()
        if self._clearing is None:
            self._clearing = asyncio.create_task(self._clear(), name="lodger-api-clearing")

    async def stop(self) -> None:
        """Stop listening, and end what is under way."""
        await self._server.stop()
        if self._sieve is not None:
            await to_thread.run_sync(self._sieve.close)
        task, self._clearing = self._clearing, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _clear(self) -> None:
        books = self._engine.books

        def forget() -> int:
            with books.database.write() as connection:
                return idempotency.forget(connection, books.clock.now_us())

        while True:
            with suppress(Unavailable):  # a full disk, a server that is down: at the next look
                while await to_thread.run_sync(forget):
                    pass
            await books.clock.sleep(CLEAR_S)
