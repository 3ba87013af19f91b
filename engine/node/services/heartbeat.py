"""Sends the heartbeat of this node."""

import asyncio
import urllib.request
from typing import ClassVar

from lodger.engine.core.errors import Unavailable
from lodger.engine.node.service import Service

#: How often the heartbeat is sent, and its time limit, seconds.
HEARTBEAT_S = 60.0
HEARTBEAT_LIMIT_S = 10.0


class Heartbeat(Service):
    """Requests a URL every minute while this node holds its lease: the receiver reports when the requests stop."""

    name: ClassVar[str] = "heartbeat"

    async def round(self) -> float:
        """Send one request.

        Raises:
            Unavailable: heartbeat_failed.
        """
        if self.context.identity.lease is not None:
            try:
                await asyncio.to_thread(self._send)
            except OSError as error:
                raise Unavailable("heartbeat_failed", reason=str(error)) from None
        return HEARTBEAT_S

    def _send(self) -> None:
        """Request the heartbeat URL."""
        url = str(self.context.settings.heartbeat_url)
        with urllib.request.urlopen(url, timeout=HEARTBEAT_LIMIT_S):  # noqa: S310 - the setting is http or https
            pass
