"""Free slots: filled with actions that may start now or shortly."""

from dataclasses import replace
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.events import ActionsReady, AttemptReleased, ChangeReported, LeaseLost, LedgerChanged, SlotFreed
from lodger.engine.node.context import NodeContext
from lodger.engine.node.ledger_loop.part import Instant, Outlook, Part, Turn
from lodger.engine.node.node_events import Claimed
from lodger.engine.node.running_attempts import RunningAttempts
from lodger.engine.policy.placement import Room
from lodger.engine.store.lifecycle import claims
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.queue import ready_queue

#: During a backlog, claims are rarer and smaller, so that ticks go first.
BACKLOG_CLAIM_INTERVAL_S = 0.05
BACKLOG_CLAIM_SIZE = 50
#: First wait after a claim that found nothing, seconds; each further one doubles it.
VAIN_S, MAX_DOUBLINGS = 0.01, 9


class FreeSlots(Part):
    """Claims no more than may start at once."""

    name: ClassVar[str] = "free-slots"

    def __init__(self, context: NodeContext, outlook: Outlook, attempts: RunningAttempts) -> None:
        super().__init__(context, outlook)
        self._attempts = attempts
        #: Whether the ledger may have changed since the outlook was read.
        self._is_changed = True
        self._vain = 0
        self._rests_until_s = 0.0
        #: Whether the last claim beside other parts left an action that is due: others may have locked it.
        self._was_passed_by = False
        #: Whether actions that wait require labels, or tenants are bound to some: such a look is several questions.
        self._has_labels = False
        bus = context.bus
        bus.subscribe(LedgerChanged, self._changed)
        bus.subscribe(ChangeReported, self._changed)
        bus.subscribe(LeaseLost, self._changed)
        bus.subscribe(ActionsReady, self._ready)
        bus.subscribe(AttemptReleased, self._released)
        bus.subscribe(SlotFreed, self._released)

    def _changed(self, _event: LedgerChanged | ChangeReported | LeaseLost) -> None:
        """Claim again after a change of the ledger."""
        self._is_changed, self._rests_until_s = True, 0.0

    def _ready(self, _event: ActionsReady) -> None:
        """Claim in the next round, because an action may start now."""
        self.outlook.startable_us, self._rests_until_s = 0, 0.0

    def _released(self, _event: AttemptReleased | SlotFreed) -> None:
        """Claim again after a slot became free."""
        self._rests_until_s = 0.0

    def is_outdated(self, now: Instant) -> bool:
        """Whether to read when the next action may start, for a slot that is free."""
        return self._is_changed and self.context.identity.lease is not None and self._attempts.free > 0

    async def look(self) -> None:
        """Read when the next action may start: that stands until a commit of another process, however far away it is."""
        lease = self.context.identity.lease
        if lease is None:
            return
        self._is_changed = False
        try:
            found = await self.context.db.cached_read(
                ("startable", lease.labels), partial(ready_queue.next_startable, labels=lease.labels)
            )
        except BaseException:
            self._is_changed = True
            raise
        # A transaction of the loop that ended meanwhile may have seen more, or less.
        known = [each for each in (found, self.outlook.startable_us) if each is not None]
        self.outlook.startable_us = min(known, default=None)

    def wait_s(self, now: Instant) -> float:
        """Return the seconds until shortly before the next action may start; with a backlog of ticks, claims come by themselves."""
        context, upcoming = self.context, self.outlook.startable_us
        if context.identity.lease is None or self.clock.skewed or self.clock.hold:
            return context.settings.poll_s
        if upcoming is None or self._attempts.free <= 0:
            return context.idle_s
        wait_s = max((context.lead_us(upcoming) - now.us) / 1_000_000, self._rests_until_s - now.s)
        if self.outlook.behind_s is not None:
            wait_s = max(wait_s, self.outlook.claimed_s + BACKLOG_CLAIM_INTERVAL_S - now.s)
        return min(context.idle_s, wait_s)

    def wants_alone(self, now: Instant) -> bool:
        """Whether to wait for rows that others had locked: with a backlog, the due clocks take part in every transaction."""
        upcoming, rests = self.outlook.startable_us, now.s < self._rests_until_s
        due = upcoming is not None and upcoming <= now.us
        return self._was_passed_by and not rests and due

    def wants(self, turn: Turn) -> bool:
        """Note the room for claims in the turn; take part if there is any, and beside other parts, whose rows may let an action start."""
        turn.room = self._room(turn)
        if turn.room is None and self._attempts.free <= 0 and self._may_claim(turn.lease):
            over = self._attempts.over
            turn.over = replace(self._attempts.room(), slots=over) if over > 0 else None
            turn.busy = frozenset(claim.tenant_id for claim in self._attempts.claims)
        if turn.room is not None:
            self.outlook.claimed_s = turn.now.s
        return bool(turn.parts) or turn.room is not None

    def _room(self, turn: Turn) -> Room | None:
        """Return the room for claims in a transaction; None for none."""
        if not self._may_claim(turn.lease):
            return None
        room = self._attempts.room()
        if room.slots <= 0:
            return None
        if self.outlook.behind_s is None:
            return room
        if turn.now.s < self.outlook.claimed_s + BACKLOG_CLAIM_INTERVAL_S:
            return None
        return replace(room, slots=min(room.slots, BACKLOG_CLAIM_SIZE))

    def _may_claim(self, lease: Lease | None) -> bool:
        """Whether the node holds a lease and its time is right."""
        return lease is not None and not self.clock.skewed and not self.clock.hold

    @staticmethod
    def _room_over(turn: Turn) -> tuple[Room | None, frozenset[str] | None]:
        """Return the room for claims, and the tenants that they may be of, None for all: beyond the slots only tenants that were just
        ticked."""
        ticked = frozenset(each.tenant_id for each in turn.ticked if each.runs)
        only = frozenset() if turn.over is None else ticked - turn.busy
        return (turn.over, only) if only else (turn.room, None)

    def write(self, connection: Connection, turn: Turn) -> None:
        """Claim if an action may start; read when the next one may.

        Beside other parts, rows that others have locked are left to a later claim: others may wait for rows that these parts have locked.
        """
        turn.derive_queues(connection)
        context, lease, store = self.context, turn.lease, self.context.store
        startable_us = self.outlook.startable_us
        if any(each.runs for each in turn.ticked):
            startable_us, turn.has_looked = 0, True
        elif turn.batch and lease is not None:
            startable_us, turn.has_looked = self._startable_after(connection, turn, lease), True
        turn.startable_us = startable_us
        now_us = self.clock.now_us()
        ahead_us = context.ahead_us(now_us)
        room, only = self._room_over(turn)
        if lease is not None and room is not None and startable_us is not None and startable_us <= ahead_us:
            claimed = claims.claim(
                store, connection, lease, room.slots, now_us, room, turn.spent, wait=turn.parts == [self],
                ahead_us=ahead_us, only=only,
            )  # fmt: skip

            def note_claims() -> None:
                """Note the claimed attempts, whose rows arrive at the end of the transaction."""
                turn.claims = claimed()

            turn.answers.append(note_claims)
            turn.has_claimed = turn.has_looked = True
        if turn.has_looked and lease is not None and (turn.has_claimed or self._is_remote):
            self._ask_next(connection, turn, lease)

    @property
    def _is_remote(self) -> bool:
        """Whether reading when the next action may start costs a round trip of its own before a claim."""
        return self.context.store.database.driver.is_remote and not self._has_labels

    def _startable_after(self, connection: Connection, turn: Turn, lease: Lease) -> int | None:
        """Return when the next action may start after ends were written."""
        if not self._is_remote:
            return ready_queue.next_startable(connection, lease.labels)
        return 0 if turn.committed is not None and turn.committed.may_start else self.outlook.startable_us

    def _ask_next(self, connection: Connection, turn: Turn, lease: Lease) -> None:
        """Ask when the next action may start after this transaction."""
        if not self._is_remote:
            turn.startable_us = ready_queue.next_startable(connection, lease.labels)
            return
        asked = ready_queue.ask_startable(connection)

        def note_next_start() -> None:
            """Note when the next action may start, and whether actions need labels."""
            turn.startable_us, has_labels = asked()
            if has_labels:
                self._has_labels = self._is_changed = True

        turn.answers.append(note_next_start)

    def written(self, turn: Turn) -> None:
        """Start the claimed attempts, unless their lease was lost meanwhile: then they are another's, or claimed anew."""
        if turn.has_looked:
            self.outlook.startable_us = turn.startable_us
        if not turn.has_claimed:
            return
        self.context.bus.publish(Claimed(tuple(turn.claims), turn.spent))
        held, lease = self.context.identity.lease, turn.lease
        if held is None or lease is None or held.epoch != lease.epoch:
            return
        self._attempts.begin(turn.claims)
        upcoming = turn.startable_us
        is_full = turn.room is not None and len(turn.claims) >= turn.room.slots
        self._was_passed_by = turn.parts != [self] and not is_full and upcoming is not None and upcoming <= turn.now.us
        if turn.claims:
            self._vain, self._rests_until_s = 0, 0.0
        elif turn.parts == [self]:
            # An action is due that this node may not start: another node has it, or a budget or the node's memory.
            wait_s = min(self.context.settings.poll_s, VAIN_S * 2**self._vain)
            self._vain, self._rests_until_s = min(self._vain + 1, MAX_DOUBLINGS), self.clock.elapsed_s() + wait_s

    def failed(self, turn: Turn, error: Exception) -> bool:
        """Look again: transactions without this part may let an action start."""
        self._is_changed = True
        return False
