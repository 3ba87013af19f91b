"""How many requests are carried out at once: of one token no more than its share, so that nobody waits behind a neighbour's
thousand. What waits too long, or behind too many, is told so at once.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lodger.engine.server.problems import Refused

#: Requests of one token that wait for their turn.
WAITING = 128


@dataclass(slots=True)
class _Gate:
    turns: asyncio.Semaphore
    here: int = 0


class Turnstile:
    """Lets ``share`` of each token through at once; the others wait in line, at most :data:`WAITING`."""

    def __init__(self, share: int) -> None:
        self._share = share
        self._gates: dict[str, _Gate] = {}

    @asynccontextmanager
    async def through(self, name: str) -> AsyncIterator[None]:
        """Wait for a turn; hold it for the block.

        Raises:
            Refused: too_many_at_once.
        """
        gate = self._gates.setdefault(name, _Gate(asyncio.Semaphore(self._share)))
        if gate.here >= self._share + WAITING:
            raise Refused(
                429,
                "too_many_at_once",
                f"{self._share} requests of this token are carried out and {WAITING} wait",
                fix="send fewer at once",
                headers={"Retry-After": "1"},
            )
        gate.here += 1
        try:
            async with gate.turns:
                yield
        finally:
            gate.here -= 1
            if not gate.here:
                del self._gates[name]
