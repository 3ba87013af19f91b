"""Stands for the workers: how long each attempt takes and how it ends is drawn from the seed and the attempt itself."""

import asyncio
import random
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from lodger.engine.core.execution import Claim, Finished
from lodger.engine.effects.errors import ConflictFound, EffectRefused
from lodger.engine.store.stores import driver_of
from lodger.sandbox.job import ScriptError, Usage
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

#: Journals: applied; refused by a constraint; written for a row that has changed since.
GOOD, REFUSED, STALE = "good", "refused", "stale"
_BAD = (Outcome.SCRIPT_ERROR, Outcome.CPU_LIMIT, Outcome.CONFLICT, Outcome.ENGINE_FAULT, Outcome.WORKER_LOST)


class Workers:
    """Runs the claims of one simulated process. Satisfies :class:`lodger.engine.core.execution.Executor`.

    Attributes:
        calm: whether every attempt ends soon and well: the world comes to rest.
    """

    def __init__(self, seed: int, calm: "Callable[[], bool]") -> None:
        self._seed = seed
        self._calm = calm
        self.ran = 0
        #: Attempts (action, number) whose worker lives.
        self.at_work: set[tuple[str, int]] = set()
        #: The node that they work for; a process that was started again has another one.
        self.node_id = ""

    async def start(self) -> None:
        """Nothing has to be made ready."""

    async def stop(self) -> None:
        """Nothing has to be let go of."""

    async def execute(self, claim: Claim) -> Finished:
        """Take some virtual time, and end somehow."""
        key = (claim.action_id, claim.attempt)
        self.at_work.add(key)
        try:
            return await self._run(claim)
        finally:
            self.at_work.discard(key)

    async def _run(self, claim: Claim) -> Finished:
        self.ran += 1
        # Of what stays the same when something else of the world is left out: a shortened plan draws the same ends.
        chance = random.Random(
            f"{self._seed} {claim.script_name} {claim.slot_us} {claim.step} {claim.tries} {claim.tenant_id}"
        )
        kind = chance.random()
        usage = Usage(cpu_ms=chance.randrange(1000) / 10)
        if self._calm():
            await asyncio.sleep(0.001)
            return Finished(Outcome.OK, "1", usage=usage, journal=GOOD)
        if kind < 0.01:
            await asyncio.get_running_loop().create_future()  # silent for ever: somebody has to take it away
        if kind < 0.02:
            raise RuntimeError("the pool has a bug")
        seconds = (
            chance.uniform(0.001, 0.05)
            if kind < 0.75
            else chance.uniform(0.05, 1.5)
            if kind < 0.96
            else chance.uniform(2, 12)
        )
        await asyncio.sleep(seconds)
        if chance.random() < 0.12:
            outcome = chance.choice(_BAD)
            return Finished(outcome, error=ScriptError("Error", "no"), usage=usage)
        return Finished(Outcome.OK, "1", usage=usage, journal=chance.choices((GOOD, REFUSED, STALE), (30, 1, 1))[0])

    def apply(self, connection: Connection, claim: Claim, finished: Finished) -> None:
        """Apply a journal: leave a row, which nothing keeps from being there twice.

        Raises:
            NotApplied: sometimes, after the row was written: the savepoint takes it back.
        """
        row = (claim.action_id, claim.step, claim.attempt, self.node_id, claim.lease_epoch)
        connection.exec_driver_sql(_SEEN[driver_of(connection).name], row)
        if finished.journal is REFUSED:
            raise EffectRefused("constraint", "a constraint says no", index=0)
        if finished.journal is STALE:
            raise ConflictFound("conflict", "a row has changed", index=0)


_SEEN = {
    "sqlite": "INSERT INTO effects_seen VALUES (?, ?, ?, ?, ?)",
    "postgresql": "INSERT INTO effects_seen VALUES (%s, %s, %s, %s, %s)",
}
