"""Hears of other processes' commits through the notifications of a server."""

import asyncio
import contextlib
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ClassVar

from lodger.engine.core.events import ChangeReported
from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.connection.notify import CHANNEL, WINDOW_S
from lodger.engine.store.drivers import patience
from lodger.engine.store.drivers.features import Subscription

#: How soon a lost connection is tried again at first, and at most, seconds.
RECONNECT_S, MAX_RECONNECT_S = 0.5, 30.0
#: How often a connection is asked whether it is still there, seconds. Nothing else is sent on it, so only a question tells a
#: network that swallows everything from a quiet hour. It is given up when the next question is due and no answer has come.
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
        self._connection: Subscription | None = None
        self._descriptor = -1
        # A server that does not answer delays nothing else.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lodger-listener")
        self._later: asyncio.TimerHandle | None = None
        self._reconnect_s = RECONNECT_S
        self._asked, self._due_s = False, 0.0
        #: Set while it listens; tests wait for it.
        self.listening = asyncio.Event()

    async def round(self) -> float:
        """Connect when there is no connection; otherwise ask whether it is still there."""
        if self._connection is not None and (left := self._probed()) is not None:
            return left
        try:
            self._connection = await self._connecting()
        except Exception as error:  # noqa: BLE001 - without notifications the node goes on by looking
            if self._reconnect_s == RECONNECT_S:
                _log.warning("commit notifications failed: %s; polling every %g s", error, self.context.settings.poll_s)
            wait, self._reconnect_s = self._reconnect_s, min(self._reconnect_s * 2, MAX_RECONNECT_S)
            return wait
        self._reconnect_s = RECONNECT_S
        self._descriptor = self._connection.fileno()
        asyncio.get_running_loop().add_reader(self._descriptor, self._readable)
        self.listening.set()
        # Something may have changed while there was no subscription.
        self.context.bus.publish(ChangeReported())
        self._asked, self._due_s = False, self.clock.elapsed_s() + PROBE_S
        return PROBE_S

    def _probed(self) -> float | None:
        """Ask when it is time; return the seconds until the next step, or None when the last question was not answered in time."""
        if (left := self._due_s - self.clock.elapsed_s()) > 0:
            return left
        assert self._connection is not None
        with contextlib.suppress(Exception):  # a connection that takes no question is as good as none
            if not self._asked:
                self._connection.probe()
                self._asked, self._due_s = True, self.clock.elapsed_s() + PROBE_S
                return PROBE_S
        _log.warning(
            "commit notifications: no answer for %g s; polling every %g s", PROBE_S, self.context.settings.poll_s
        )
        self._close()
        return None

    async def stop(self) -> None:
        """End the loop and the connection."""
        await super().stop()
        self._close()
        self._thread.shutdown(wait=False)

    async def _connecting(self) -> Subscription:
        """Subscribe to the database's notifications in a thread; return the subscription."""
        job = self._thread.submit(self._connected)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            job.add_done_callback(_abandoned)
            raise

    def _connected(self) -> Subscription:
        """Subscribe to notifications of the database."""
        settings, database = self.context.settings, self.context.store.database
        address = settings.listen_url or database.url
        return database.driver.subscribe(address, CHANNEL, patience.PATIENCE_S)

    def _readable(self) -> None:
        """Receive notifications, and report a change."""
        heard = False
        if self._connection is None:
            return
        try:
            heard, answered = self._connection.received()
            self._asked = self._asked and not answered
        except Exception:  # noqa: BLE001 - the server is gone, or the network; the next round connects anew
            self._close()
            self.wake()
        if heard:
            self.context.bus.publish(ChangeReported())
            if self._later is None:
                self._later = asyncio.get_running_loop().call_later(WINDOW_S * 2, self._once_more)

    def _once_more(self) -> None:
        """Report a change again, for a transaction that was not visible at the notification."""
        self._later = None
        self.context.bus.publish(ChangeReported())

    def _close(self) -> None:
        """Close the subscription, if there is one."""
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
    """Close a subscription that was made after the listener stopped."""
    if not job.cancelled() and job.exception() is None:
        job.result().close()
