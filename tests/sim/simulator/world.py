"""One seed's world: processes of the real engine on one ledger, what happens to them, and the laws after each transaction."""

import math
import random
import tempfile
from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack
from contextvars import copy_context
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, event
from tests.sim.simulator import audit, rules, vigil
from tests.sim.simulator.clock import WorldClock
from tests.sim.simulator.executor import Workers
from tests.sim.simulator.laws import LAWS, Broken
from tests.sim.simulator.loop import PROCESS, Process, VirtualLoop
from tests.sim.simulator.mirror import Mirror, Transaction, Turn
from tests.sim.simulator.oracle import Oracle, count
from tests.sim.simulator.plan import LABEL, Happening, Plan
from tests.sim.simulator.recorder import Recorder, Row
from tests.sim.simulator.troubles import Crash, Trouble, Troubles
from tests.sim.simulator.verbs import Verbs

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.events import Event
from lodger.engine.core.ids import Identities
from lodger.engine.core.settings import Settings
from lodger.engine.node.executors.attempt_budgets import BudgetReservations
from lodger.engine.node.node import Node
from lodger.engine.service.engine import Engine
from lodger.engine.store.connection.database import Database
from lodger.engine.store.content_cache import ContentCache
from lodger.engine.store.context import StoreContext
from lodger.engine.store.revision_cache import RevisionCache, encode_rules

#: What a figure of a run counts; see :meth:`World.figures`.
Figures = Counter[str]


#: How long what is open may be no fewer once nothing happens any more, seconds.
REST_S = 170.0


class Machine:
    """A place for a node: its process may die, and another one begins there."""

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
        self.workers = Workers(world.plan.seed, lambda: world.calm, self.engine.datasets,
                               BudgetReservations(self.engine.context) if world.plan.shape.draws else None)  # fmt: skip
        self.node = Node(self.engine.host, self.workers, f"n{self.number}")
        self.workers.node_id = self.node.id
        self.engine.on_event(self._hear)
        world.loop.spawn(self.process, self.node.start())

    def _hear(self, event: Event) -> None:
        """Hear of a round that failed: when the host is not to blame, we are."""
        error = event.details["error"] if event.kind == "fault" else None
        if error is not None and not isinstance(error, Unavailable):
            reported = f"{event.details['service']} of n{self.number}: {type(error).__name__}: {error}"
            self.world.breaks(Broken("no service fails but for the host", reported))

    def forsake(self) -> None:
        """Close what a process that died held open, as the kernel does."""
        db = vars(self.node).get("db") if self.node is not None else None
        if db is not None:
            db.close()

    def end(self) -> None:
        """Kill the process; another one begins a little later."""
        if self.process is None:
            return
        self.world.loop.kill(self.process)
        self.forsake()
        self.process = self.node = self.workers = self.engine = None
        self.world.disturbed()
        self.world.later(self.world.chance.uniform(0.2, 4.0), self.begin)


class World:
    """Plays a plan. :meth:`run` it; it raises :class:`Broken` when a law does not hold.

    Args:
        url: of an empty PostgreSQL database; None for SQLite in a folder of the world's own.
        tampered: called with the database before anything happens: tests plant bugs there.
    """

    def __init__(
        self, plan: Plan, *, url: str | None = None, tampered: Callable[[Database], None] | None = None
    ) -> None:
        self.plan = plan
        self.chance = random.Random(f"world {plan.seed}")
        self._stack = ExitStack()
        self._context = copy_context()
        self.troubles = Troubles(self)
        self.loop = VirtualLoop(self.troubles.carry)  # type: ignore[abstract]  # what it leaves out asks a machine
        self.clock = WorldClock(self.loop, plan.start_us)
        self.ids = Identities(self.clock.now_us, self.chance.randbytes)
        # No notices of a server either: they would come when they like, and the loop of a world hears no socket.
        self.settings = Settings(
            sqlite_synchronous="NORMAL", min_interval_s=1, listen_url="off", check_scripts=False, **plan.settings
        )
        self.figures: Figures = Counter()
        #: What was done of late: (seconds, who, what), told when a law is broken.
        self.lately: deque[tuple[float, str, Any]] = deque(maxlen=80)
        self.calm = False
        #: When something was done to a machine last, and when to its time.
        self.disturbed_s = self.warped_s = 0.0
        #: The clock that is due and late for longest, (since, schedule), and when it became that one.
        self.oldest: tuple[tuple[int, str] | None, float] = (None, 0.0)
        #: Where ledger and workers differ, and since when.
        self.odd: dict[tuple[str, str, int], float] = {}
        self.broken: Broken | None = None
        if url is None:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="lodger-sim-", dir=_memory()))
            url = str(Path(folder) / "world.db")
        self.database = Database(url, synchronous="NORMAL")
        self._stack.callback(self.database.close)
        self._known: dict[str, rules.Rule] = {}
        self.mirror = Mirror(self._understood)
        event.listen(self.database.engine, "before_cursor_execute", self._statement)
        # Before the recorder: what does not come to its commit is never heard of.
        event.listen(self.database.engine, "commit", self._committing)
        Recorder(self.database, self._heard)
        if tampered is not None:
            tampered(self.database)
        self.operator = Process("operator")
        self.engine = Engine(self.context())
        self.verbs = Verbs(self)
        self.machines = [Machine(self, number) for number in range(plan.shape.nodes)]

    def context(self, machine: int | None = None) -> StoreContext:
        """Give what a new process would have: caches of its own on the one ledger. The first machine has a label."""
        settings = self.settings.model_copy(update={"labels": LABEL if machine == 0 else ""})
        made = RevisionCache(settings, rules.compiled)
        return StoreContext(self.database, self.clock, self.ids, made, ContentCache(settings), settings)

    def close(self) -> None:
        """Leave nothing behind; safe to call twice."""
        for machine in self.machines:
            if machine.process is not None:
                self.loop.kill(machine.process)
            machine.forsake()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ended: object) -> None:
        self.close()

    # ---- what the database tells

    def know(self, rule: rules.Rule) -> dict[str, Any]:
        """Remember a rule, so that it is understood when the ledger has it; give what to ask the engine for."""
        self._known[encode_rules(rules.stored(rule, self.plan.start_us))] = rule
        return rules.wish(rule, self.plan.start_us)

    def _understood(self, stored: str) -> Oracle:
        return rules.oracle(self._known[stored], self.plan.start_us)

    def _statement(self, *arguments: object) -> None:
        self.figures["statements"] += 1
        self.figures["shares"] += "INSERT INTO lodger_lots" in str(arguments[2])
        self.troubles.statement()

    def _committing(self, _connection: Connection) -> None:
        self.troubles.committing()

    def _heard(self, rows: list[Row]) -> None:
        process = PROCESS.get()
        process_name = "operator" if process is None else process.name
        transaction = Transaction(process_name, self.loop.time(), self.clock.now_us(), self.clock.latest_us())
        try:
            self.mirror.take(rows, transaction)
            if transaction.tells:
                self.lately.append((self.loop.time(), process_name, transaction))
            for law in LAWS:
                law(self.mirror, transaction)
            vigil.surrendered(self, transaction)
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
                    figures["slots_run"] += row.state == "ready"
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
        """Stop the world: a law does not hold."""
        if self.broken is None:
            self.broken = broken
        self.loop.stop()

    def may(self, machine: Machine, turn: Turn) -> bool:
        """Whether a machine's node has a slot left for whose turn this is."""
        node = machine.node
        if node is None:
            return False
        carried = node.lease.labels if node.lease is not None else frozenset[str]()
        free = len(node.attempts) < node.dispatcher.slots
        return free and carried.issuperset(turn.requires.split() + turn.bound.split())

    def disturbed(self, *, warped: bool = False) -> None:
        """Note that something was done to a machine (or even to its time): for a while no promise of time holds."""
        self.disturbed_s = self.loop.time()
        if warped:
            self.warped_s = self.loop.time()

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Let something happen that no process does."""
        self.loop.call_later(seconds, what, context=self._context)

    # ---- what happens

    def run(self) -> Figures:
        """Play the plan, then let the world come to rest.

        Raises:
            Broken: a law does not hold.
        """
        for tenant in range(self.plan.shape.tenants):
            self.verbs.tenant(f"t{tenant}")
        for machine in self.machines:
            machine.begin()
        for happening in self.plan.happenings:
            self.loop.call_at(happening.at_s, self._happens, happening)
        vigil.begin(self)
        self._play(self.plan.shape.seconds)
        self._settle()
        return self.figures

    def _play(self, until_s: float) -> None:
        self.loop.run(until_s)
        if self.broken is not None:
            raise self.broken
        for fault in self.loop.faults:
            raise Broken("nothing of the engine's is left unhandled", repr(fault))

    def _happens(self, happening: Happening) -> None:
        if self.calm:
            return
        self.figures[f"verb {happening.verb}"] += 1
        verb = getattr(self.verbs, happening.verb, None) or getattr(self.troubles, happening.verb)
        try:
            said = verb(**happening.given)
        except InputError as refused:
            said = refused.code
        except (Crash, Unavailable) as trouble:
            said = type(trouble).__name__
        self.lately.append((self.loop.time(), happening.verb, f"{happening.given} {said}"))

    def _settle(self) -> None:
        """Heal everything, end what is open, and look at the whole ledger."""
        self.troubles.heal()
        self.verbs.rest()
        self.calm = True
        # However much is left, it becomes less: worlds in which more came due than their nodes can do take their time.
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
                self.troubles.sleep(max(action.due - self.clock.now_us() for action in left) / 1_000_000)
        # Of a node that died its cancelled attempts are known to be unreported when its lease has ended.
        self._play(self.loop.time() + 3 * self.settings.lease_s)
        self.figures["virtual_s"] += round(self.loop.time())
        audit.audit(self)

    def met(self, trouble: Trouble) -> None:
        """Count a fault that happened."""
        self.figures[f"fault {trouble.what}"] += 1


def _memory() -> str | None:
    """Give a folder in memory, where there is one: whether the disk keeps what it was told is not what is asked here."""
    shared_memory = Path("/dev/shm")
    return str(shared_memory) if shared_memory.is_dir() else None
