"""Ends of attempts: those that came during the last transaction, or within two thirds of ``ahead_s``, share the next one."""

import logging
import math
from dataclasses import replace
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Claim
from lodger.engine.effects import outcome_commit
from lodger.engine.effects.database_errors import TransactionLost
from lodger.engine.effects.finished import Finished
from lodger.engine.effects.outcome_commit import Committed
from lodger.engine.node.context import NodeContext
from lodger.engine.node.ledger_loop.part import Instant, Outlook, Part, Turn
from lodger.engine.node.node_events import AttemptFinished, BatchCommitted
from lodger.engine.node.running_attempts import Key, RunningAttempts, key_of
from lodger.engine.store.lifecycle import endings
from lodger.sandbox.outcome import Outcome

_log = logging.getLogger("lodger.node")
#: Seconds that an attempt waits for rows that another transaction holds before it is in conflict, and between two looks.
PATIENCE_S = 5.0
LOOK_S = 0.05
#: Maximum number of attempts that one transaction commits.
COMMIT_BATCH = 500


class Ends(Part):
    """The one way by which the end of an attempt reaches the ledger.

    An end that cannot be written (not for want of room or of a connection) is found by writing each alone, and becomes a fault of
    the engine: one attempt never keeps the others from being written.
    """

    name: ClassVar[str] = "ends"

    def __init__(self, context: NodeContext, outlook: Outlook, attempts: RunningAttempts) -> None:
        super().__init__(context, outlook)
        self._attempts = attempts
        context.bus.subscribe(AttemptFinished, lambda event: self._waiting.append((event.claim, event.finished)))
        self._waiting: list[tuple[Claim, Finished]] = []
        #: So many of the first that wait are written each alone: one of them cannot be written.
        self._alone = 0
        #: Attempts that wait for locked rows: since when, and when they are tried again.
        self._held_up: dict[Key, tuple[float, float]] = {}
        #: Tenants that the last transaction has passed by, because another had locked them: the next one waits for it.
        self._awaited: set[str] = set()
        #: Attempts that were being written when the database fell silent: they may have been.
        self._doubted: set[Key] = set()

    def is_outdated(self, now: Instant) -> bool:
        """Whether attempts have ended that this node has no lease for any more."""
        return bool(self._waiting) and self.context.identity.lease is None

    async def look(self) -> None:
        """Drop the attempts of a lost lease: they are another node's, except for those that were written before."""
        batch = list(self._waiting)
        committed = Committed((), tuple(claim for claim, _finished in batch))
        if any(key_of(claim) in self._doubted for claim in committed.lost):
            committed = await self.context.db.read(partial(self._answered, committed=committed, batch=batch))
        self._settle(batch, committed)

    def wait_s(self, now: Instant) -> float:
        """Return the seconds to wait for others that share the transaction: none if no other attempt runs or an action waits for a
        slot."""
        if self.context.identity.lease is None:
            return math.inf
        if self._ready(now.s):
            startable_us = self.outlook.startable_us
            if not self._attempts.running or (startable_us is not None and startable_us <= now.us):
                return 0.0
            # No later than the next tick comes, which is a third before the end of what the last one has ticked.
            return self.outlook.claimed_s + self.context.settings.ahead_s * 2 / 3 - now.s
        if not self._held_up:
            return math.inf
        return min(look for _since, look in self._held_up.values()) - now.s

    def wants(self, turn: Turn) -> bool:
        """Whether ends wait; those that wait for locked rows are left out until they are tried again."""
        if turn.lease is not None:
            turn.batch = self._ready(turn.now.s)[: 1 if self._alone else COMMIT_BATCH]
        return bool(turn.batch)

    def _ready(self, now_s: float) -> list[tuple[Claim, Finished]]:
        """Return the ends to write now: those that met locked rows wait for a moment."""
        if not self._held_up:
            return self._waiting
        return [each for each in self._waiting if self._held_up.get(key_of(each[0]), (0.0, now_s))[1] <= now_s]

    def ask(self, connection: Connection, turn: Turn) -> None:
        """Ask for the running actions and their tenants' budgets."""
        assert turn.lease is not None
        store = self.context.store
        turn.asked[self] = outcome_commit.ask(
            store, connection, turn.lease, turn.batch, self.clock.now_us(), self._awaited
        )

    def write(self, connection: Connection, turn: Turn) -> None:
        """Write the outcomes, effects, logs and usage of ended attempts."""
        assert turn.lease is not None
        waited_long = {key[0] for key, (since, _look) in self._held_up.items() if turn.now.s - since >= PATIENCE_S}
        committed = outcome_commit.commit(
            self.context.store, connection, turn.lease, turn.batch, self.clock.now_us(), waited_long=waited_long,
            asked=turn.asked.get(self), touched=turn.touched,
        )  # fmt: skip
        turn.committed = self._answered(connection, committed, turn.batch)

    def written(self, turn: Turn) -> None:
        """Publish the committed ends; ends that met locked rows wait on."""
        assert turn.committed is not None
        self._settle(turn.batch, turn.committed)

    def _settle(self, batch: list[tuple[Claim, Finished]], committed: Committed) -> None:
        """Drop committed ends, and set when those that met locked rows are tried again."""
        held_up = {key_of(claim) for claim in committed.waiting}
        now = self.clock.elapsed_s()
        for key in held_up:
            since, look = self._held_up.get(key, (now, now))
            # Twice as long as it has waited already, at most a second: a lock is mostly gone at once.
            self._held_up[key] = (since, now + min(1.0, max(LOOK_S, look - since)))
        self._awaited = {claim.tenant_id for claim in committed.passed_by}
        over = [each for each in batch if each[0].tenant_id not in self._awaited and key_of(each[0]) not in held_up]
        gone = {key_of(claim) for claim, _finished in over}
        self._waiting = [each for each in self._waiting if key_of(each[0]) not in gone]
        self._doubted -= gone
        for key in gone:
            self._held_up.pop(key, None)
        self._alone = max(0, self._alone - len(batch) + len(committed.passed_by))
        self.context.bus.publish(BatchCommitted(tuple(over), committed))

    def failed(self, turn: Turn, error: Exception) -> bool:
        """Let an attempt whose effects made the database roll back end as refused; find the end that cannot be written."""
        if isinstance(error, Unavailable):
            self._doubted.update(key_of(claim) for claim, _finished in turn.batch)
        elif isinstance(error, TransactionLost) and self._replace(error.action_id, error):
            # All of them again, without the effects of that one: a platform's trigger delays no other run.
            _log.warning(
                "the effects of a run were refused; the other runs of its batch are committed again: %s", error
            )
            return True
        elif turn.writing is self:
            if len(turn.batch) > 1:
                self._alone = len(turn.batch)
            elif turn.batch[0][1].outcome is not Outcome.ENGINE_FAULT:
                self._replace(turn.batch[0][0].action_id, error)
        return False

    def _replace(self, action_id: str | None, error: Exception) -> bool:
        """Replace a waiting end by one that says it could not be committed; return False if the action has none."""
        for place, (claim, finished) in enumerate(self._waiting):
            if claim.action_id == action_id:
                self._waiting[place] = (claim, outcome_commit.failed_commit(finished, error))
                return True
        return False

    def _answered(self, connection: Connection, committed: Committed, batch: list[tuple[Claim, Finished]]) -> Committed:
        """Move attempts from the lost ones to the settled if an earlier transaction has written their ends and only its answer was
        lost."""
        seems = {key_of(claim) for claim in committed.lost} & self._doubted
        if not seems:
            return committed
        settled = endings.find_committed(
            connection,
            self.context.identity.id,
            [(claim, finished.outcome) for claim, finished in batch if key_of(claim) in seems],
        )
        there = {(each.action_id, each.attempt) for each in settled}
        lost = tuple(claim for claim in committed.lost if key_of(claim) not in there)
        return replace(committed, settled=(*committed.settled, *settled), lost=lost)
