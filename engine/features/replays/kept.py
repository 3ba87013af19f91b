"""Which attempts a node records: those that fail, all or none of scripts that say so, and all of scripts with a shadow."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select, false, or_, select

from lodger.engine.core.clock import Clock
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Claim
from lodger.engine.features.replays import recorded
from lodger.engine.features.replays.recording import Recording
from lodger.engine.store.drivers.prepared import Prepared

#: How old a node's knowledge of a tenant may be, seconds.
FRESH_S = 2.0
#: By tenant and script: which attempts are recorded; id and live version of the running shadow.
_Known = tuple[dict[tuple[str, str], str], dict[tuple[str, str], tuple[str, int]]]
_USUAL: _Known = {}, {}
_UNKNOWN: _Known = {}, {}


@dataclass(frozen=True, slots=True)
class Compared:
    """Scripts of which every attempt of the live version is compared with another one.

    Attributes:
        any: selects them, of all tenants.
        running: id and live version of compared scripts, by tenant and script, of these tenants.
    """

    any: Select[Any]
    running: Callable[[Connection, Collection[str]], dict[tuple[str, str], tuple[str, int]]]


#: Appended to by wings.
COMPARED: list[Compared] = []
_any = Prepared(
    lambda _driver: select(recorded.first.is_not(None)).add_columns(
        or_(false(), *(each.any.exists() for each in COMPARED))
    )
)


class KeptRecords:
    """Scripts that are recorded in another way than by default; read for tenants with a beginning attempt, and known for FRESH_S.

    Args:
        read: runs a query on the ledger.
    """

    def __init__(self, read: Callable[[Callable[[Connection], Any]], Awaitable[Any]], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        #: By tenant, or None for all tenants: when it was read, seconds, and the knowledge.
        self._known: dict[str | None, tuple[float, _Known]] = {}
        self._wanted: set[str] = set()
        self._lock = asyncio.Lock()

    async def recording(self, claim: Claim) -> Recording | None:
        """Return a recording of a claim's attempt; None if none is kept."""
        while (known := self._find(claim.tenant_id)) is None:
            self._wanted.add(claim.tenant_id)
            async with self._lock:  # attempts that begin meanwhile are read for together
                if claim.tenant_id in self._wanted:
                    await self._look()
        script = claim.tenant_id, claim.script_name
        kept, shadow = known[0].get(script, "failed"), known[1].get(script)
        if kept == "none" or known is _UNKNOWN:
            return None
        # Of each step the first attempt is compared: a run counts once.
        if shadow is not None and shadow[1] == claim.script_version and claim.tries == 1:
            return Recording(always=True, shadow=shadow[0])
        return Recording(always=kept == "all")

    def _find(self, tenant_id: str) -> _Known | None:
        """Return the choices of a tenant that were read less than FRESH_S ago; None if they must be read."""
        fresh_s = self._clock.elapsed_s() - FRESH_S
        found = (self._known[key] for key in (None, tenant_id) if key in self._known)
        return next((known for read_s, known in found if read_s > fresh_s), None)

    async def _look(self) -> None:
        """Read what the wanted tenants let be recorded; nothing is recorded while the ledger does not answer."""
        tenants, self._wanted = sorted(self._wanted), set()
        found = _UNKNOWN
        with suppress(Unavailable):
            found = await self._read(partial(_load, tenant_ids=tenants))
        now_s = self._clock.elapsed_s()
        self._known = {key: each for key, each in self._known.items() if each[0] > now_s - FRESH_S}
        self._known |= dict.fromkeys([None] if found is _USUAL else tenants, (now_s, found))


def _load(connection: Connection, tenant_ids: Collection[str]) -> _Known:
    """Return the choices of these tenants; ``_USUAL`` if no tenant has any."""
    if _any.first(connection, {}) == (False, False):
        return _USUAL
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for each in COMPARED:
        found |= each.running(connection, tenant_ids)
    return recorded.load(connection, tenant_ids), found
