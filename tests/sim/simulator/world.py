"""The world of one seed: processes of the real engine on one ledger, their events and faults, and the laws."""

import math
import random
import tempfile
from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack
from contextvars import copy_context
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

from sqlalchemy import Connection, event
from tests.sim.simulator import audit, liveness, rules
from tests.sim.simulator.clock import WorldClock
from tests.sim.simulator.executor import Workers
from tests.sim.simulator.faults import Crash, Fault, Faults
from tests.sim.simulator.laws import LAWS, Broken
from tests.sim.simulator.loop import PROCESS, Process, VirtualLoop
from tests.sim.simulator.mirror import Mirror, Transaction, Turn
from tests.sim.simulator.operations import Operations
from tests.sim.simulator.oracle import Oracle, count
from tests.sim.simulator.plan import LABEL, Plan, PlannedEvent
from tests.sim.simulator.recorder import Recorder, Row

from lodger.engine.capabilities.attempt_budgets import BudgetReservations
from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim
from lodger.engine.core.ids import Identities
from lodger.engine.core.settings import Settings
from lodger.engine.node.ledger_loop import ends
from lodger.engine.node.node import Node
from lodger.engine.store.connection.database import Database
from lodger.engine.store.content_cache import ContentCache
from lodger.engine.store.context import StoreContext
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.revision_cache import RevisionCache, encode_rules
from lodger.engine.sync import Engine

#: Counted events by name; see :meth:`World.figures`.
Figures = Counter[str]


#: Seconds without progress at the end of a world after which it fails.
REST_S = 170.0


class Machine:
    """A machine with one node, which is restarted after it died."""

    def __init__(self, world: "World", number: int) -> None:
        self.world, self.number, self.lives = world, number, 0
        self.process: Process | None = None
        self.node: Node | None = None
        self.workers: Workers | None = None
        self.engine: Engine | None = None
        self.since_s = 0.0

    def begin(self) -> None:
        """Start a node in a new process."""
        world = self.world
        self.lives += 1
        self.since_s = world.loop.time()
        self.process = Process(f"n{self.number}.{self.lives}")
        self.engine = Engine(world.context(self.number))
        self.workers = Workers(world.plan.seed, lambda: world.calm, world.begins, self.engine.datasets,
                               BudgetReservations(self.engine.context) if world.plan.shape.draws else None)  # fmt: skip
        self.node = Node(self.engine.host, self.workers, f"n{self.number}")
        self.workers.node_id = self.node.id
        self.engine.on_event(self._hear)
        world.loop.spawn(self.process, self._start(self.process, self.node))

    async def _start(self, process: Process, node: Node) -> None:
        """Start the node; its process ends if the database refuses, as a program does whose node cannot start."""
        try:
            await node.start()
        except Unavailable:
            if self.process is process:
                self.world.later(0, self.end)

    def _hear(self, event: Event) -> None:
        """Handle a failed round of a service: it is a bug unless a fault caused it."""
        error = event.details["error"] if event.kind == "fault" else None
        if error is not None and not isinstance(error, Unavailable):
            reported = f"{event.details['service']} of n{self.number}: {type(error).__name__}: {error}"
            self.world.breaks(Broken("no service fails but for the host", reported))

    def close_connections(self) -> None:
        """Close the connections of a killed process."""
        db = vars(self.node).get("db") if self.node is not None else None
        if db is not None:
            db.close()

    def end(self) -> None:
        """Kill the process; a new one starts a little later."""
        if self.process is None:
            return
        self.world.loop.kill(self.process)
        self.close_connections()
        self.process = self.node = self.workers = self.engine = None
        self.world.record_fault()
        self.world.later(self.world.chance.uniform(0.2, 4.0), self.begin)


class World:
    """One simulated system that plays a plan; :meth:`run` raises :class:`Broken` if a law does not hold.

    Args:
        url: of an empty PostgreSQL database; None for SQLite in a temporary folder.
        prepare: called with the database at the beginning, to plant bugs.
    """

    def __init__(
        self, plan: Plan, *, url: str | None = None, prepare: Callable[[Database], None] | None = None
    ) -> None:
        self.plan = plan
        self.chance = random.Random(f"world {plan.seed}")
        self._stack = ExitStack()
        self._context = copy_context()
        self.faults = Faults(self)
        self.loop = VirtualLoop(self.faults.carry)  # type: ignore[abstract]  # the other methods need an operating system
        self.clock = WorldClock(self.loop, plan.start_us)
        self.ids = Identities(self.clock.now_us, self.chance.randbytes)
        # Without LISTEN: the loop of a world reads no socket.
        given = dict(plan.settings)
        for module, name in ((tick, "TICK_BATCH"), (ends, "COMMIT_BATCH")):
            self._stack.enter_context(patch.object(module, name, given.pop(name.lower(), getattr(module, name))))
        self.settings = Settings(
            sqlite_synchronous="NORMAL", min_interval_s=1, listen_url="off", check_scripts=False, **given
        )
        self.figures: Figures = Counter()
        #: Recent events (seconds, process, event), reported with a broken law.
        self.recent: deque[tuple[float, str, Any]] = deque(maxlen=80)
        self.calm = False
        #: Time of the last fault of a machine, and of the last change of its clock.
        self.disturbed_s = self.warped_s = 0.0
        #: The longest late schedule clock (since, schedule), and since when it is the same.
        self.oldest: tuple[tuple[int, str] | None, float] = (None, 0.0)
        #: Differences between ledger and executors, and their time.
        self.odd: dict[tuple[str, str, int], float] = {}
        self.broken: Broken | None = None
        if url is None:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="lodger-sim-", dir=_memory()))
            url = str(Path(folder) / "world.db")
        self.database = Database(url, synchronous="NORMAL")
        self._stack.callback(self.database.close)
        self._known: dict[str, rules.Rule] = {}
        self.mirror = Mirror(self._oracle_of)
        event.listen(self.database.engine, "before_cursor_execute", self._statement)
        # Before the recorder, which must not see uncommitted transactions.
        event.listen(self.database.engine, "commit", self._committing)
        Recorder(self.database, self._check_transaction)
        if prepare is not None:
            prepare(self.database)
        self.operator = Process("operator")
        self.engine = Engine(self.context())
        self.operations = Operations(self)
        self.machines = [Machine(self, number) for number in range(plan.shape.nodes)]

    def context(self, machine: int | None = None) -> StoreContext:
        """Return the store context of a new process, with its own caches. The first machine has a label."""
        settings = self.settings.model_copy(update={"labels": LABEL if machine == 0 else ""})
        made = RevisionCache(settings)
        return StoreContext(self.database, self.clock, self.ids, made, ContentCache(settings), settings)

    def close(self) -> None:
        """Delete the ledger; safe to call twice."""
        for machine in self.machines:
            if machine.process is not None:
                self.loop.kill(machine.process)
            machine.close_connections()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ended: object) -> None:
        self.close()

    # ---- events of the database

    def register_rule(self, rule: rules.Rule) -> dict[str, Any]:
        """Register a rule for the oracle, and return the arguments for the engine."""
        self._known[rules.starts_of(encode_rules(rules.stored(rule, self.plan.start_us)))[0]] = rule
        return rules.arguments_for(rule, self.plan.start_us)

    def _oracle_of(self, stored: str) -> Oracle:
        """Return the oracle of stored rules."""
        given, starts = rules.starts_of(stored)
        return rules.oracle(self._known[given], self.plan.start_us, starts)

    def _statement(self, *arguments: object) -> None:
        self.figures["statements"] += 1
        self.figures["shares"] += "INSERT INTO lodger_lots" in str(arguments[2])
        self.faults.statement()

    def _committing(self, _connection: Connection) -> None:
        self.faults.committing()

    def _check_transaction(self, rows: list[Row]) -> None:
        """Apply the rows of a committed transaction to the mirror, and check the laws."""
        process = PROCESS.get()
        process_name = "operator" if process is None else process.name
        transaction = Transaction(process_name, self.loop.time(), self.clock.now_us(), self.clock.latest_us())
        try:
            self.mirror.take(rows, transaction)
            if transaction.is_notable:
                self.recent.append((self.loop.time(), process_name, transaction))
            for law in LAWS:
                law(self.mirror, transaction)
            liveness.check_lost_leases(self, transaction)
        except Broken as broken:
            self.breaks(broken)
            raise
        self._count(transaction)

    def _count(self, transaction: Transaction) -> None:
        figures = self.figures
        figures["transactions"] += 1
        for schedule, written in transaction.slots.items():
            for row in written:
                if row.slot_to is None:
                    figures["slots"] += 1
                    figures["slots_run"] += row.state in {"ready", "running"}
                else:
                    oracle = self.mirror.terms[schedule, row.revision or 0].oracle
                    figures["gaps"] += 1
                    figures["slots_in_gaps"] += count(oracle, row.slot or 0, row.slot_to)
        for old, new in transaction.actions.values():
            if old is None:
                figures["actions"] += 1
            elif new is not None and new.state == "done" != old.state:
                figures["done"] += 1
        figures["attempts"] += len(transaction.attempts)
        figures["effects"] += len(transaction.effects)

    def breaks(self, broken: Broken) -> None:
        """Stop the world because a law is broken."""
        if self.broken is None:
            self.broken = broken
        self.loop.stop()

    def begins(self, claim: Claim) -> None:
        """Check that an attempt does not begin before its time; a clock that was set back may say that it does."""
        early_us = claim.due_us - self.clock.latest_us()
        if early_us > 0 and self.loop.time() - self.warped_s > liveness.LATE_S:
            self.breaks(Broken("nothing starts before it is due", f"{claim.action_id} starts {early_us} µs early"))

    def may(self, machine: Machine, turn: Turn) -> bool:
        """Return whether a machine's node has a free slot for a tenant's turn."""
        node = machine.node
        if node is None:
            return False
        carried = node.lease.labels if node.lease is not None else frozenset[str]()
        free = node.attempts.free > 0
        return free and carried.issuperset(turn.requires.split() + turn.bound.split())

    def record_fault(self, *, warped: bool = False) -> None:
        """Record a fault of a machine or of its clock: for a while the laws of liveness are not checked."""
        self.disturbed_s = self.loop.time()
        if warped:
            self.warped_s = self.loop.time()

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Schedule a function of the world itself."""
        self.loop.call_later(seconds, what, context=self._context)

    # ---- run

    def run(self) -> Figures:
        """Play the plan, finish all actions, and return the counted events.

        Raises:
            Broken: a law does not hold.
        """
        for tenant in range(self.plan.shape.tenants):
            self.operations.tenant(f"t{tenant}")
        for machine in self.machines:
            machine.begin()
        for planned_event in self.plan.events:
            self.loop.call_at(planned_event.at_s, self._carry_out, planned_event)
        liveness.begin(self)
        self._play(self.plan.shape.seconds)
        self._settle()
        return self.figures

    def _play(self, until_s: float) -> None:
        """Let the world go on until a time; raise what broke."""
        self.loop.run(until_s)
        if self.broken is not None:
            raise self.broken
        for fault in self.loop.faults:
            raise Broken("nothing of the engine's is left unhandled", repr(fault))

    def _carry_out(self, planned_event: PlannedEvent) -> None:
        """Carry out an event of the plan."""
        if self.calm:
            return
        self.figures[f"verb {planned_event.verb}"] += 1
        verb = getattr(self.operations, planned_event.verb, None) or getattr(self.faults, planned_event.verb)
        try:
            said = verb(**planned_event.given)
        except InputError as refused:
            said = refused.code
        except (Crash, Unavailable) as trouble:
            said = type(trouble).__name__
        self.recent.append((self.loop.time(), planned_event.verb, f"{planned_event.given} {said}"))

    def _settle(self) -> None:
        """Remove all faults, finish all actions, and audit the ledger."""
        self.faults.heal()
        self.operations.rest()
        self.calm = True
        # Overloaded worlds need time, but the number of unfinished actions must decrease.
        fewest, since_s = math.inf, self.loop.time()
        while True:
            self._play(self.loop.time() + 10)
            left = [action for some in self.mirror.open.values() for action in some.values()]
            if not left:
                break
            if len(left) < fewest:
                fewest, since_s = len(left), self.loop.time()
            elif self.loop.time() - since_s >= REST_S:
                reported = Counter(f"{each.origin} {each.state}" for each in left)
                raise Broken("everything ends", f"open, and no fewer for three minutes: {dict(reported)}")
            if all(action.due > self.clock.now_us() for action in left):
                self.faults.sleep(max(action.due - self.clock.now_us() for action in left) / 1_000_000)
        # Cancelled attempts of a dead node count as unreported once its lease has ended.
        self._play(self.loop.time() + 3 * self.settings.lease_s)
        self.figures["virtual_s"] += round(self.loop.time())
        audit.audit(self)

    def met(self, trouble: Fault) -> None:
        """Count an injected fault."""
        self.figures[f"fault {trouble.what}"] += 1


def _memory() -> str | None:
    """Return a folder in memory if there is one, because durability is not tested here."""
    shared_memory = Path("/dev/shm")
    return str(shared_memory) if shared_memory.is_dir() else None
