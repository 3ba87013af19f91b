"""Which attempts a node records: those that fail, all or none of scripts that say so, and all of scripts with a shadow."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection

from lodger.engine.core.clock import Clock
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Claim
from lodger.engine.node.replay.recording import Recording
from lodger.engine.store.scripts import recorded, shadows

#: How old its knowledge of the ledger may be, seconds.
FRESH_S = 2.0
#: By tenant and script: which attempts are recorded; id and live version of the running shadow.
_Known = tuple[dict[tuple[str, str], str], dict[tuple[str, str], tuple[str, int]]]


class KeptRecords:
    """Scripts that are recorded in another way than by default; read anew every :data:`FRESH_S` while attempts begin.

    Args:
        read: runs a query on the ledger.
    """

    def __init__(self, read: Callable[[Callable[[Connection], Any]], Awaitable[Any]], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._read_s = -FRESH_S
        self._known: _Known = {}, {}
        self._lock = asyncio.Lock()

    async def recording(self, claim: Claim) -> Recording | None:
        """Return a recording of a claim's attempt; None if none is kept."""
        async with self._lock:  # attempts that begin together know the same
            now_s = self._clock.elapsed_s()
            if now_s - self._read_s >= FRESH_S:
                self._read_s = now_s
                with suppress(Unavailable):  # a record never changes how an attempt ends
                    self._known = await self._read(_load)
        script = claim.tenant_id, claim.script_name
        kept, shadow = self._known[0].get(script, "failed"), self._known[1].get(script)
        if kept == "none":
            return None
        # Of each step the first attempt is compared: a run counts once.
        if shadow is not None and shadow[1] == claim.script_version and claim.tries == 1:
            return Recording(always=True, shadow=shadow[0])
        return Recording(always=kept == "all")


def _load(connection: Connection) -> _Known:
    return recorded.load(connection), shadows.running(connection)
