"""How many requests are carried out at once: of one token no more than its share, so that nobody waits behind a neighbour's
thousand. What waits too long, or behind too many, is told so at once.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from lodger.engine.api.problems import Refused

#: Requests of one token that wait for their turn.
WAITING = 128


@dataclass(slots=True)
class _Gate:
    free: int
    waiting: list[asyncio.Future[None]] = field(default_factory=list)


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
        gate = self._gates.setdefault(name, _Gate(self._share))
        if gate.free > 0:
            gate.free -= 1
        else:
            if len(gate.waiting) >= WAITING:
                raise Refused(
                    429,
                    "too_many_at_once",
                    f"{self._share} requests of this token are carried out and {WAITING} wait",
                    fix="send fewer at once",
                    headers={"Retry-After": "1"},
                )
            await self._wait(name, gate)
        try:
            yield
        finally:
            self._leave(name, gate)

    async def _wait(self, name: str, gate: _Gate) -> None:
        turn = asyncio.get_running_loop().create_future()
        gate.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(name, gate)  # the turn came just when its request went away
            else:
                gate.waiting.remove(turn)
            raise

    def _leave(self, name: str, gate: _Gate) -> None:
        while gate.waiting:
            turn = gate.waiting.pop(0)
            if not turn.done():
                turn.set_result(None)
                return
        gate.free += 1
        if gate.free == self._share:
            self._gates.pop(name, None)
