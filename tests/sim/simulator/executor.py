"""Executor of the simulation: duration and outcome of each attempt are drawn from the seed and the attempt."""

import asyncio
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from lodger.engine.capabilities.attempt_budgets import BudgetReservations
from lodger.engine.core.execution import Claim
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.effects.effect import Update
from lodger.engine.effects.finished import Finished
from lodger.engine.effects.journal import Journal
from lodger.engine.store.usage.budget_reservations import ReservationRequest
from lodger.engine.store.usage.usage import DAY_US
from lodger.sandbox.job import ScriptError, Usage
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

#: Kinds of journals: applied; refused by a constraint; in conflict with a changed row.
GOOD, REFUSED, STALE = "good", "refused", "stale"
#: Columns that a journal writes.
WRITTEN = ("id", "step", "n", "node_id", "lease_epoch", "fits")
_BAD = (Outcome.SCRIPT_ERROR, Outcome.CPU_LIMIT, Outcome.CONFLICT, Outcome.ENGINE_FAULT, Outcome.WORKER_LOST)


class Workers:
    """Executor of one simulated process. Satisfies :class:`lodger.engine.effects.finished.Executor`.

    Args:
        calm: whether every attempt succeeds quickly, at the end of the world.
        begins: called with each attempt that begins.
        reservations: reserves each attempt's share of its tenant's daily budgets; None for no reservations.
    """

    def __init__(
        self, seed: int, calm: "Callable[[], bool]", begins: "Callable[[Claim], None]", datasets: Datasets,
        reservations: BudgetReservations | None = None,
    ) -> None:  # fmt: skip
        self._seed = seed
        self._begins = begins
        self._reservations = reservations
        self._datasets = datasets
        self._effects = datasets.expose(EFFECTS, tenant_column="tenant_id", write=WRITTEN, feed="off")
        self._calm = calm
        self.ran = 0
        #: Running attempts (action, number).
        self.at_work: set[tuple[str, int]] = set()
        #: The node that they belong to.
        self.node_id = ""

    async def start(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Stop the thread for reservations."""
        if self._reservations is not None:
            await self._reservations.close()

    async def execute(self, claim: Claim) -> Finished:
        """Run an attempt in virtual time and return its outcome."""
        key = (claim.action_id, claim.attempt)
        self._begins(claim)
        self.at_work.add(key)
        try:
            return await self._run(claim)
        finally:
            self.at_work.discard(key)

    async def _run(self, claim: Claim) -> Finished:
        """Run an attempt, which may first reserve a part of a budget."""
        self.ran += 1
        if self._reservations is None:
            return await self._end(claim)
        day = claim.started_us // DAY_US
        await self._reservations(
            ReservationRequest(claim.tenant_id, claim.action_id, claim.attempt, day, "fetches", 1, 5)
        )
        return replace(await self._end(claim), has_reservation=True)

    async def _end(self, claim: Claim) -> Finished:
        """Draw how an attempt ends, and wait as long as it runs."""
        # Depends only on what a shortened plan does not change, so that it draws the same outcomes.
        chance = random.Random(
            f"{self._seed} {claim.script_name} {claim.slot_us} {claim.step} {claim.tries} {claim.tenant_id}"
        )
        kind = chance.random()
        usage = Usage(cpu_ms=chance.randrange(1000) / 10)
        if self._calm():
            await asyncio.sleep(0.001)
            return Finished(Outcome.OK, "1", usage=usage, journal=self._journal(claim, GOOD))
        if kind < 0.01:
            await asyncio.get_running_loop().create_future()  # never ends: it must be taken over
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
        draw_plan = chance.choices((GOOD, REFUSED, STALE), (30, 1, 1))[0]
        return Finished(Outcome.OK, "1", usage=usage, journal=self._journal(claim, draw_plan))

    def _journal(self, claim: Claim, kind: str) -> Journal:
        """Return the attempt's journal: a row in a table without a unique key, and sometimes a refused one."""
        rows, datasets = self._effects, self._datasets
        made = Journal(claim.tenant_id, claim.action_id, claim.step, datasets.pinned())
        values = {"id": claim.action_id, "step": claim.step, "n": claim.attempt, "node_id": self.node_id,
                  "lease_epoch": claim.lease_epoch, "fits": True}  # fmt: skip
        made.insert(rows, {"key": made.token(), **values}, given=frozenset(values), token=True)
        if kind == REFUSED:  # after a valid row, which the savepoint rolls back
            made.insert(rows, {"key": made.token(), **values, "fits": False}, given=frozenset(values), token=True)
        if kind == STALE:
            made.record_read(rows, [{"key": 1, **values}])
            made.change(Update(rows, 1, {"step": 0}), None)
        return made


def _table() -> sa.Table:
    """Return an exposed table to which each applied journal adds a row; only its number is unique.

    The row with ``key`` 1 does not exist, so that changing it is a conflict.
    """
    return sa.Table(
        "effects_seen",
        sa.MetaData(),
        sa.Column("key", sa.Integer, sa.Identity(start=2), primary_key=True),
        sa.Column("tenant_id", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("n", sa.Integer, nullable=False),
        sa.Column("node_id", sa.Text, nullable=False),
        sa.Column("lease_epoch", sa.Integer, nullable=False),
        sa.Column("fits", sa.Boolean, nullable=False),
        sa.CheckConstraint("fits", name="effects_fit"),
        sqlite_autoincrement=True,
    )


#: Table of applied journals, on which laws are checked.
EFFECTS = _table()
