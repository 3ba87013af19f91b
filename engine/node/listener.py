"""Hears what other processes have changed, on a connection of its own; without it a node learns of it by looking (``poll_s``)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar

from lodger.engine.ledger.hints import CHANNEL, WINDOW_S
from lodger.engine.node.service import Service

if TYPE_CHECKING:
    from lodger.engine.node.node import Node

#: How soon a lost connection is tried again at first, and at most, seconds.
AGAIN_S, AGAIN_MOST_S = 0.5, 30.0
#: What ``listen_url`` says when nobody shall listen.
OFF = "off"
_log = logging.getLogger("lodger.node")


class Listener(Service):
    """Keeps the connection; what is heard nudges ticker and dispatcher.

    Nothing is lost while it is down, so that it is down is told in the log and is no fault.
    """

    name: ClassVar[str] = "listener"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._connection: Any = None
        self._descriptor = -1
        # A server that does not answer holds up nobody else.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lodger-listener")
        self._later: asyncio.TimerHandle | None = None
        self._again_s = AGAIN_S
        #: Set while it listens; tests wait for it.
        self.listening = asyncio.Event()

    async def round(self) -> float:
        """Connect when there is no connection; otherwise there is nothing to do."""
        if self._connection is not None:
            return 60.0
        try:
            self._connection = await self._connecting()
        except Exception as error:  # noqa: BLE001 - whatever keeps it from listening, the node goes on by looking
            if self._again_s == AGAIN_S:
                _log.warning("listener: %s; looking every %g s goes on", error, self._node.settings.poll_s)
            wait, self._again_s = self._again_s, min(self._again_s * 2, AGAIN_MOST_S)
            return wait
        self._again_s = AGAIN_S
        self._descriptor = self._connection.fileno()
        asyncio.get_running_loop().add_reader(self._descriptor, self._readable)
        self.listening.set()
        # Something may have been changed while nobody listened.
        self._node.look()
        return 60.0

    async def stop(self) -> None:
        """End the loop and the connection."""
        await super().stop()
        self._close()
        self._thread.shutdown(wait=False)

    async def _connecting(self) -> Any:  # noqa: ANN401 - a driver's connection
        job = self._thread.submit(self._connected)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            job.add_done_callback(_abandoned)
            raise

    def _connected(self) -> Any:  # noqa: ANN401 - a driver's connection
        from lodger.engine.ledger import postgres

        connection = postgres.alone(self._node.settings.listen_url or self._node.books.database.url)
        try:
            connection.execute(f"LISTEN {CHANNEL}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _readable(self) -> None:
        heard = False
        try:
            self._connection.pgconn.consume_input()
            while self._connection.pgconn.notifies() is not None:
                heard = True
        except Exception:  # noqa: BLE001 - the server is gone, or the network; the next round connects anew
            self._close()
            self.nudge()
        if heard:
            self._node.look()
            if self._later is None:
                self._later = asyncio.get_running_loop().call_later(WINDOW_S * 2, self._once_more)

    def _once_more(self) -> None:
        self._later = None
        self._node.look()

    def _close(self) -> None:
        self.listening.clear()
        if self._later is not None:
            self._later.cancel()
            self._later = None
        connection, self._connection = self._connection, None
        if connection is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            with contextlib.suppress(Exception):
                connection.close()


def _abandoned(job: Future[Any]) -> None:
    if not job.cancelled() and job.exception() is None:
        job.result().close()
