"""Hears what other processes have changed, on a connection of its own; without it a node learns of it by looking (``poll_s``)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar

from lodger.engine.node.service import Service
from lodger.engine.store.connection.notify import CHANNEL, WINDOW_S

if TYPE_CHECKING:
    from lodger.engine.node.node import Node
    from lodger.engine.store.stores.features import Subscription

#: How soon a lost connection is tried again at first, and at most, seconds.
AGAIN_S, AGAIN_MOST_S = 0.5, 30.0
#: How often a connection is asked whether it is still there, seconds. Nobody sends anything on it otherwise, so that nothing but
#: a question can tell a network that swallows all from a quiet hour. It is given up when the next is due and none has come.
PROBE_S = 10.0
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
        self._connection: Subscription | None = None
        self._descriptor = -1
        # A server that does not answer holds up nobody else.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lodger-listener")
        self._later: asyncio.TimerHandle | None = None
        self._again_s = AGAIN_S
        self._asked, self._due_s = False, 0.0
        self._probe_s = min(PROBE_S, node.settings.database_patience_s)
        #: Set while it listens; tests wait for it.
        self.listening = asyncio.Event()

    async def round(self) -> float:
        """Connect when there is no connection; otherwise ask whether it is still there."""
        if self._connection is not None and (left := self._probed()) is not None:
            return left
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
        self._asked, self._due_s = False, self.clock.elapsed_s() + self._probe_s
        return self._probe_s

    def _probed(self) -> float | None:
        """Ask when it is time; give how long that has time, or None when the last question was never answered."""
        if (left := self._due_s - self.clock.elapsed_s()) > 0:
            return left
        assert self._connection is not None
        with contextlib.suppress(Exception):  # a connection that takes no question is as good as none
            if not self._asked:
                self._connection.probe()
                self._asked, self._due_s = True, self.clock.elapsed_s() + self._probe_s
                return self._probe_s
        _log.warning(
            "listener: no answer for %g s; looking every %g s goes on", self._probe_s, self._node.settings.poll_s
        )
        self._close()
        return None

    async def stop(self) -> None:
        """End the loop and the connection."""
        await super().stop()
        self._close()
        self._thread.shutdown(wait=False)

    async def _connecting(self) -> Subscription:
        job = self._thread.submit(self._connected)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            job.add_done_callback(_abandoned)
            raise

    def _connected(self) -> Subscription:
        settings, database = self._node.settings, self._node.books.database
        address = settings.listen_url or database.url
        return database.driver.subscribe(address, CHANNEL, settings.database_patience_s)

    def _readable(self) -> None:
        heard = False
        if self._connection is None:
            return
        try:
            heard, answered = self._connection.received()
            self._asked = self._asked and not answered
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


def _abandoned(job: Future[Subscription]) -> None:
    if not job.cancelled() and job.exception() is None:
        job.result().close()
