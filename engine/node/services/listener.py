"""Hears of other processes' commits through the notifications of a server."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import ClassVar

from lodger.engine.core.events import ChangeReported
from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.connection.notify import CHANNEL

#: How soon a lost connection is tried again at first, and at most, seconds.
RECONNECT_S, MAX_RECONNECT_S = 0.5, 30.0
#: How often a connection is asked whether it is still there, and how long it may take to answer, seconds. Nothing else is sent on
#: it, so only a question tells a network that swallows everything from a quiet hour.
PROBE_S = 10.0
#: Value of ``listen_url`` that turns the listener off.
OFF = "off"
_log = logging.getLogger("lodger.node")


class Listener(Service):
    """Hears of other processes' commits on a connection of its own, where the database notifies.

    Nothing is lost while it is down, because the node still looks every ``poll_s``; so that it is down is a line in the log and
    no fault.
    """

    name: ClassVar[str] = "listener"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        # A server that does not answer delays nothing else.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lodger-listener")
        self._is_stopped = False
        self._reconnect_s = RECONNECT_S
        #: Set while it listens; tests wait for it.
        self.listening = asyncio.Event()

    async def round(self) -> float:
        """Listen until the connection is lost; return the seconds until the next try."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._listen, loop)
        except Exception as error:  # noqa: BLE001 - without notifications the node goes on by looking
            if self._reconnect_s == RECONNECT_S:
                _log.warning("commit notifications failed: %s; polling every %g s", error, self.context.settings.poll_s)
        self.listening.clear()
        wait, self._reconnect_s = self._reconnect_s, min(self._reconnect_s * 2, MAX_RECONNECT_S)
        return wait

    async def stop(self) -> None:
        """End the loop and the connection."""
        self._is_stopped = True
        await super().stop()
        self._thread.shutdown(wait=False)

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand notifications to the event loop until the connection is lost or the service is stopped."""
        settings, database = self.context.settings, self.context.store.database
        address = settings.listen_url or database.url
        with closing(database.driver.notifications(address, CHANNEL, PROBE_S)) as notifications:
            was_notified = False
            for is_notified in notifications:
                if self._is_stopped:
                    return
                # Once more a moment later, for a transaction that was not visible at the notification.
                if is_notified or was_notified:
                    loop.call_soon_threadsafe(self._hear)
                was_notified = is_notified

    def _hear(self) -> None:
        """Report that there may have been a commit."""
        self.listening.set()
        self._reconnect_s = RECONNECT_S
        self.context.bus.publish(ChangeReported())
