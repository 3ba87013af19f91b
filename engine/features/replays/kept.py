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
        #: By tenant: when it was read, seconds; None as knowledge: the ledger could not be read.
        self._known: dict[str, tuple[float, _Known | None]] = {}
        #: When no script of any tenant was found to be recorded in another way, seconds: mostly none is.
        self._usual_s = -FRESH_S
        self._wanted: set[str] = set()
        self._lock = asyncio.Lock()

    async def recording(self, claim: Claim) -> Recording | None:
        """Return a recording of a claim's attempt; None if none is kept."""
        while not self._is_fresh(claim.tenant_id):
            self._wanted.add(claim.tenant_id)
            async with self._lock:  # attempts that begin meanwhile are read for together
                if claim.tenant_id in self._wanted:
                    await self._look()
        known = self._known.get(claim.tenant_id, (0.0, _USUAL))[1]
        script = claim.tenant_id, claim.script_name
        kept, shadow = ("none", None) if known is None else (known[0].get(script, "failed"), known[1].get(script))
        if kept == "none":
            return None
        # Of each step the first attempt is compared: a run counts once.
        if shadow is not None and shadow[1] == claim.script_version and claim.tries == 1:
            return Recording(always=True, shadow=shadow[0])
        return Recording(always=kept == "all")

    def _is_fresh(self, tenant_id: str) -> bool:
        """Whether the choices of a tenant were read less than FRESH_S ago."""
        read_s = max(self._usual_s, self._known.get(tenant_id, (-FRESH_S,))[0])
        return self._clock.elapsed_s() - read_s < FRESH_S

    async def _look(self) -> None:
        """Read what the wanted tenants let be recorded. If the ledger does not answer, known choices stay, and of other tenants
        nothing is recorded."""
        tenants, self._wanted = sorted(self._wanted), set()
        usual = None if self._usual_s == -FRESH_S else _USUAL
        before = {each: self._known.get(each, (0.0, usual))[1] for each in tenants}
        self._known = {each: known for each, known in self._known.items() if self._is_fresh(each)}
        with suppress(Unavailable):
            found = await self._read(partial(_load, tenant_ids=tenants))
            if found is _USUAL:
                self._usual_s = self._clock.elapsed_s()
                self._known = {}
                return
            self._usual_s = -FRESH_S
            before = dict.fromkeys(tenants, found)
        now_s = self._clock.elapsed_s()
        self._known |= {each: (now_s, known) for each, known in before.items()}


def _load(connection: Connection, tenant_ids: Collection[str]) -> _Known:
    """Return the choices of these tenants; ``_USUAL`` if no tenant has any."""
    if _any.first(connection, {}) == (False, False):
        return _USUAL
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for each in COMPARED:
        found |= each.running(connection, tenant_ids)
    return recorded.load(connection, tenant_ids), found
