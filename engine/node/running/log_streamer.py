"""Writes down what attempts say while they run, so that whoever watches sees it before the end, from any process.

Lines of short attempts are not written: they come with the attempt. Of longer ones what is new is written twice a second, all
attempts of a node in one transaction, each line once: what a script may say at all bounds it. Told from node to page in memory it
would be cheaper, and be seen only where both are one process, which ``lodger up`` is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from lodger.engine.core.execution import Claim
from lodger.engine.node.service import Service
from lodger.engine.store.connection.savepoint import savepoint
from lodger.engine.store.lifecycle import running_lines
from lodger.engine.store.lifecycle.running_lines import Attempt, Batch
from lodger.sandbox.job import LogLine

if TYPE_CHECKING:
    from lodger.engine.node.node import Node

#: Seconds that an attempt has run before its lines are written, and between two times that they are.
LATE_S = EVERY_S = 0.5
#: Seconds after which lines that were written are left to the sweep, when their attempt is stored nowhere.
GIVEN_UP_S = 60.0
IDLE_S = 3600.0


@dataclass(slots=True)
class _Said:
    claim: Claim
    begun_s: float
    waiting: list[LogLine] = field(default_factory=list)
    written: int = 0
    over_s: float | None = None


class Scribe(Service):
    """Holds at most what the limits let each running attempt say."""

    name: ClassVar[str] = "scribe"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._said: dict[Attempt, _Said] = {}

    def hear(self, claim: Claim, line: LogLine) -> None:
        """Take a line as it arrives, in the node's loop."""
        key = (claim.tenant_id, claim.action_id, claim.step, claim.attempt)
        said = self._said.get(key)
        if said is None:
            said = self._said[key] = _Said(claim, self.clock.elapsed_s())
            if len(self._said) == 1:
                self.nudge()
        said.waiting.append(line)

    def over(self, claim: Claim) -> None:
        """Note that an attempt is over; its own lines are stored with it."""
        key = (claim.tenant_id, claim.action_id, claim.step, claim.attempt)
        said = self._said.get(key)
        if said is None:
            return
        if said.written:
            said.waiting.clear()
            said.over_s = self.clock.elapsed_s()
        else:
            del self._said[key]

    async def round(self) -> float:
        """Write what is new of attempts that have run for a while; forget those that are stored."""
        now_s = self.clock.elapsed_s()
        batches, taken, over = [], [], []
        for key, said in self._said.items():
            if said.over_s is not None:
                over.append(key)
            elif said.waiting and now_s - said.begun_s >= LATE_S:
                lines = tuple(said.waiting)
                taken.append((said, len(lines)))
                batches.append(Batch(*key, said.written, lines))
        if batches or over:
            for said, count in taken:  # counted before the wait: an attempt that ends meanwhile has lines to forget
                said.written += 1
                del said.waiting[:count]
            done = await self._node.pen.write(partial(_store, batches, over, self.clock.now_us()))
            for key in over:
                ended_s = self._said[key].over_s or 0.0
                if key in done or now_s - ended_s > GIVEN_UP_S:
                    del self._said[key]
        return EVERY_S if self._said else IDLE_S


def _store(batches: list[Batch], over: list[Attempt], now_us: int, connection: Connection) -> set[Attempt]:
    try:
        with savepoint(connection):
            running_lines.write(connection, batches, now_us)
    except IntegrityError:
        pass  # an action went away just now; these are no record
    return running_lines.forget(connection, over)
