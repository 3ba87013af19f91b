"""The ledger loop: each round writes one transaction for all parts that want one."""

import asyncio
import math
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import (
    ActionsReady,
    AttemptReleased,
    ChangeReported,
    Fault,
    LeaseLost,
    LeaseRenewed,
    LedgerChanged,
    SlotFreed,
)
from lodger.engine.node.context import NodeContext
from lodger.engine.node.ledger_loop.due_clocks import DueClocks
from lodger.engine.node.ledger_loop.ends import Ends
from lodger.engine.node.ledger_loop.free_slots import FreeSlots
from lodger.engine.node.ledger_loop.part import Instant, Outlook, Part, Turn
from lodger.engine.node.node_events import AttemptFinished
from lodger.engine.node.running_attempts import RunningAttempts
from lodger.engine.node.service import BACKOFF_MAX_S, BACKOFF_S, Service
from lodger.engine.store.drivers import prepared


class LedgerLoop(Service):
    """Writes ended attempts, due clocks and claims, in this order, each round in one transaction.

    If a part fails, the others are written without it, and it rests for a while.
    """

    name: ClassVar[str] = "ledger-loop"

    def __init__(self, context: NodeContext, attempts: RunningAttempts) -> None:
        super().__init__(context)
        self._attempts = attempts
        self._outlook = outlook = Outlook()
        self._ends = Ends(context, outlook, attempts)
        self._parts: tuple[Part, ...] = (
            self._ends, DueClocks(context, outlook), FreeSlots(context, outlook, attempts),
        )  # fmt: skip
        #: Parts that read their dependencies.
        self._looks: dict[Part, asyncio.Task[None]] = {}
        #: Of parts that have failed: how long they rest, and until when, on the clock of durations.
        self._rests: dict[Part, tuple[float, float]] = {}
        self._between_rounds = asyncio.Event()
        self._between_rounds.set()
        self.wake_on(
            LedgerChanged,
            ChangeReported,
            ActionsReady,
            AttemptFinished,
            AttemptReleased,
            SlotFreed,
            LeaseRenewed,
            LeaseLost,
        )

    @property
    def behind_s(self) -> float | None:
        """When the backlog began, on the clock of durations: more clocks due than one tick takes; None without a backlog."""
        return self._outlook.behind_s

    async def drain(self) -> None:
        """Tick and claim nothing more. When this returns, the attempts that were being claimed have begun."""
        self._parts = (self._ends,)
        self._cancel_looks()
        await self._between_rounds.wait()

    async def stop(self) -> None:
        """End the loop after the transaction that is under way."""
        self._cancel_looks()
        while not self._between_rounds.is_set():
            await self._between_rounds.wait()
        await super().stop()

    async def round(self) -> float:
        """Write one transaction if a part wants one now; return the seconds until a part may want the next."""
        self._between_rounds.clear()
        try:
            await self._look()
            # A part that wanted to be alone costs the others no look.
            if self._wait_s() <= 0 and await self._write() and self._wait_s() <= 0:
                await self._write()
            return 0.0 if self._outdated() else self._wait_s()
        finally:
            self._between_rounds.set()

    # ---- dependencies of the parts

    async def _look(self) -> None:
        """Let the parts with outdated facts read them again, and wait for that until ended attempts are to be written."""
        for part in self._outdated():
            look = self._looks[part] = asyncio.create_task(self._look_of(part), name=f"lodger-look-{part.name}")
            look.add_done_callback(partial(self._looked, part))
            part.is_looking = True
        while self._looks and (wait := self._ends_wait_s()) > 0:
            self._woken_up.clear()
            await self.wait(wait)

    def _ends_wait_s(self) -> float:
        """Return the seconds until ended attempts are to be written."""
        return self._ends.wait_s(self._now()) if self._ends in self._awake() else math.inf

    def _outdated(self) -> list[Part]:
        """Return the parts whose facts about the ledger must be read again."""
        now = self._now()
        return [part for part in self._awake() if not part.is_looking and part.is_outdated(now)]

    async def _look_of(self, part: Part) -> None:
        """Let one part read its facts from the ledger."""
        try:
            await part.look()
        except Exception as error:  # noqa: BLE001 - published, and tried again
            self._rest(part, error)

    def _looked(self, part: Part, _look: "asyncio.Task[None]") -> None:
        """Note that a part's reading has ended, and wake the loop."""
        self._looks.pop(part, None)
        part.is_looking = False
        self.wake()

    def _cancel_looks(self) -> None:
        """Cancel the reads of the parts that are under way."""
        for look in self._looks.values():
            look.cancel()

    def _now(self) -> Instant:
        """Return the present instant by both clocks."""
        return Instant(self.clock.now_us(), self.clock.elapsed_s())

    def _awake(self) -> Sequence[Part]:
        """Return the parts of the loop that do not rest after a failure."""
        if not self._rests:
            return self._parts
        now_s = self.clock.elapsed_s()
        return [part for part in self._parts if self._rests.get(part, (0.0, now_s))[1] <= now_s]

    def _rest(self, part: Part, error: Exception) -> None:
        """Let a part rest after a failure, each time for longer."""
        self.context.bus.publish(Fault(part.name, error))
        rest_s, _until = self._rests.get(part, (BACKOFF_S, 0.0))
        self._rests[part] = min(rest_s * 2, BACKOFF_MAX_S), self.clock.elapsed_s() + rest_s

    def _wait_s(self) -> float:
        """Return the seconds until the next part wants to write."""
        now = self._now()
        waits = [part.wait_s(now) for part in self._awake()]
        rests = [until - now.s for part, (_rest, until) in self._rests.items() if part in self._parts and until > now.s]
        return min([*waits, *rests], default=math.inf)

    # ---- transactions

    async def _write(self) -> bool:
        """Write one transaction for the parts that want it, without a part that has failed again; return whether one was alone."""
        while turn := self._turn():
            self._attempts.claiming, self._attempts.ends_meanwhile = True, 0
            try:
                await self.context.db.write(
                    partial(self._transaction, turn), is_plain=lambda _done: self._is_plain(turn)
                )
            except Exception as error:  # noqa: BLE001 - published, and tried again without the part that has failed
                self._attempts.in_doubt = True
                if self._failed(turn, error):
                    continue
                return False
            finally:
                self._attempts.claiming = False
            for part in turn.parts:
                self._rests.pop(part, None)
                part.written(turn)
            return turn.is_alone
        return False

    def _turn(self) -> Turn | None:
        """Return the next transaction with the parts that want to write; None if no part does."""
        now = self._now()
        turn = Turn(now, self.context.ahead_us(now.us), self.context.identity.lease)
        awake = self._awake()
        alone = [part for part in awake if part.wants_alone(now)][:1]
        for parts in (alone, awake):
            turn.is_alone = parts is alone
            for part in parts:
                if part.wants(turn):
                    turn.parts.append(part)
            if turn.parts:
                return turn
        return None

    def _transaction(self, turn: Turn, connection: Connection) -> None:
        """Let the parts of a turn ask and write, in their order."""
        if self.context.store.database.driver.is_remote:
            for part in turn.parts:
                self._begin(part, turn, connection)
                part.ask(connection, turn)
        for part in turn.parts:
            self._begin(part, turn, connection)
            part.write(connection, turn)
        turn.derive_queues(connection)
        # A commit that fails is the first part's: it writes most, and rows with constraints of a platform's.
        self._begin(turn.parts[0], turn, connection)

    @staticmethod
    def _begin(part: Part, turn: Turn, connection: Connection) -> None:
        """Note in the turn that the following statements are a part's, so that a failure is assigned to it."""
        turn.writing = part
        prepared.mark(connection, part)

    @staticmethod
    def _is_plain(turn: Turn) -> bool:
        """Read the outstanding answers of a turn; return whether no service has anything to look at after it."""
        for answer in turn.answers:
            answer()
        return turn.is_plain

    def _failed(self, turn: Turn, error: Exception) -> bool:
        """Let the part that has failed rest; return whether to write again at once.

        Raises:
            Unavailable: the transaction did not begin.
        """
        turn.writing = prepared.mark_of(error) or turn.writing
        mended = [part for part in turn.parts if part.failed(turn, error)]
        if mended:
            return True
        if isinstance(error, Unavailable) and turn.writing is None:
            raise error
        self._rest(turn.writing or turn.parts[0], error)
        return not isinstance(error, Unavailable)
