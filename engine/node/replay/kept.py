"""Which attempts a node records: those that fail, and all or none of scripts that say so."""

from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import Connection

from lodger.engine.core.clock import Clock
from lodger.engine.core.execution import Claim
from lodger.engine.store.scripts import recorded

#: How old its knowledge of the ledger may be, seconds.
FRESH_S = 2.0


class KeptRecords:
    """Scripts that are recorded in another way than by default; read anew every :data:`FRESH_S` while attempts begin.

    Args:
        read: runs a query on the ledger.
    """

    def __init__(self, read: Callable[[Callable[[Connection], Any]], Awaitable[Any]], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._read_s = -FRESH_S
        self._known: dict[tuple[str, str], str] = {}

    async def of(self, claim: Claim) -> str:
        """Return which attempts of a claim's script are recorded: failed, all or none."""
        now_s = self._clock.elapsed_s()
        if now_s - self._read_s >= FRESH_S:
            self._read_s = now_s
            self._known = await self._read(recorded.load)
        return self._known.get((claim.tenant_id, claim.script_name), "failed")
