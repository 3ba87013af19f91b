"""Stores the log lines of attempts while they run, so that any process can show them before the end.

Lines of short attempts are not written: they come with the attempt. Of longer ones new lines are written twice a second, all
attempts of a node in one transaction, each line once: the limit of a script's log bounds them. Passed from node to page in memory they
would be cheaper, and be seen only where both are one process, which ``lodger up`` is not.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from lodger.engine.core.events import AttemptReleased
from lodger.engine.core.execution import Claim
from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.connection.savepoint import savepoint
from lodger.engine.store.lifecycle import running_lines
from lodger.engine.store.lifecycle.running_lines import Attempt, Batch
from lodger.sandbox.job import LogLine

#: Seconds that an attempt has run before its lines are written, and between two times that they are.
LATE_S = EVERY_S = 0.5
#: Seconds after which lines that were written are left to the sweep, when their attempt is stored nowhere.
GIVEN_UP_S = 60.0
IDLE_S = 3600.0


@dataclass(slots=True)
class _Lines:
    """Log lines of one running attempt: ``waiting`` for being stored, and the number of those ``written``; ``over_s``: when it ended."""

    claim: Claim
    begun_s: float
    waiting: list[LogLine] = field(default_factory=list)
    written: int = 0
    over_s: float | None = None


class LogStreamer(Service):
    """Holds at most as many lines as the limits let each running attempt log."""

    name: ClassVar[str] = "log-streamer"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        context.bus.subscribe(AttemptReleased, self._over)
        self._attempts: dict[Attempt, _Lines] = {}

    def add(self, claim: Claim, line: LogLine) -> None:
        """Take a log line of an attempt as it arrives, in the node's event loop."""
        key = (claim.tenant_id, claim.action_id, claim.step, claim.attempt)
        lines = self._attempts.get(key)
        if lines is None:
            lines = self._attempts[key] = _Lines(claim, self.clock.elapsed_s())
            if len(self._attempts) == 1:
                self.wake()
        lines.waiting.append(line)

    def _over(self, event: AttemptReleased) -> None:
        """Note that an attempt has ended; its waiting lines are dropped, because they are stored with its end."""
        claim = event.claim
        key = (claim.tenant_id, claim.action_id, claim.step, claim.attempt)
        lines = self._attempts.get(key)
        if lines is None:
            return
        if lines.written:
            lines.waiting.clear()
            lines.over_s = self.clock.elapsed_s()
        else:
            del self._attempts[key]

    async def round(self) -> float:
        """Write new lines of attempts that have run for a while; forget those that are stored."""
        now_s = self.clock.elapsed_s()
        batches, taken, over = [], [], []
        for key, lines in self._attempts.items():
            if lines.over_s is not None:
                over.append(key)
            elif lines.waiting and now_s - lines.begun_s >= LATE_S:
                fresh = tuple(lines.waiting)
                taken.append((lines, len(fresh)))
                batches.append(Batch(*key, lines.written, fresh))
        if batches or over:
            for lines, count in taken:  # counted before the wait: an attempt that ends meanwhile has lines to forget
                lines.written += 1
                del lines.waiting[:count]
            done = await self.context.db.write(partial(_store, batches, over, self.clock.now_us()))
            for key in over:
                ended_s = self._attempts[key].over_s or 0.0
                if key in done or now_s - ended_s > GIVEN_UP_S:
                    del self._attempts[key]
        return EVERY_S if self._attempts else IDLE_S


def _store(batches: list[Batch], over: list[Attempt], now_us: int, connection: Connection) -> set[Attempt]:
    """Store new lines of running attempts; return the attempts that have ended since."""
    try:
        with savepoint(connection):
            running_lines.write(connection, batches, now_us)
    except IntegrityError:
        pass  # an action went away just now; these are no record
    return running_lines.delete_stored(connection, over)
