"""A seeded world: several nodes, a virtual clock, the real SQLite ledger, and a crash between any two statements.

The world keeps its own account of which slots each schedule owes, from nothing but the rules and the moments at which
they were changed, and compares it with what stands in the ledger.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event, text
from tests.sim.laws import LAWS, OPEN
from tests.store.bench import node_id
from tests.store.intervals import VirtualClock, compile_intervals

from lodger.engine.clock import from_us
from lodger.engine.errors import InputError
from lodger.engine.identity import Identities
from lodger.engine.ledger import claims, clocks, commits, leases
from lodger.engine.ledger.actions import OVER
from lodger.engine.ledger.claims import Lease
from lodger.engine.node.executor import Claim, Finished
from lodger.engine.settings import Settings
from lodger.engine.sync import Engine
from lodger.sandbox.outcome import Outcome

TENANTS = ("acme", "zeta")
ENDS = (Outcome.OK, Outcome.OK, Outcome.OK, Outcome.SCRIPT_ERROR, Outcome.CPU_LIMIT, Outcome.ENGINE_FAULT)


class Crash(Exception):
    """The process died between two statements."""


class Broken(AssertionError):
    """An invariant does not hold; carries the seed and the last steps."""


@dataclass
class Owed:
    """What a schedule owes: intervals (µs) and the instants after which they count."""

    tenant_id: str
    name: str
    overlap: str
    segments: list[tuple[int, int]] = field(default_factory=list)

    def slots(self, until: int) -> Iterator[int]:
        for (step, after), end in zip(
            self.segments, [start for _step, start in self.segments[1:]] + [until], strict=True
        ):
            yield from range((after // step + 1) * step, end + 1, step)


@dataclass
class SimNode:
    """A node of the world."""

    lease: Lease
    held: list[Claim] = field(default_factory=list)


class World:
    """One seed's world; :meth:`run` it, then :meth:`settle` it. Every step ends with the invariants."""

    def __init__(self, folder: Path, seed: int, url: str | None = None) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.clock = VirtualClock()
        ids = Identities(self.clock.now_us, self.chance.randbytes)
        settings = Settings(sqlite_synchronous="NORMAL", concurrent_runs=3, catch_up_max=20, min_interval_s=1)
        path = url or str(folder / f"world-{seed}.db")
        self.engine = Engine.open(
            path, clock=self.clock, settings=settings, compile_schedule=compile_intervals, ids=ids
        )
        self.books = self.engine.books
        self.nodes: list[SimNode] = []
        self.owed: dict[str, Owed] = {}
        self.trace: list[str] = []
        self.steps = Counter[str]()
        self.fuse: int | None = None
        event.listen(self.books.database.engine, "before_cursor_execute", self._burn)
        with self.books.database.write() as connection:
            kind = "UUID" if self.books.database.dialect == "postgresql" else "TEXT"
            connection.exec_driver_sql(f"CREATE TABLE effects_seen (id {kind}, step INTEGER, n INTEGER)")
        for tenant in TENANTS:
            self._tenant(tenant)

    def close(self) -> None:
        self.engine.close()

    def _burn(self, *_arguments: object) -> None:
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                self.fuse = None
                raise Crash

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self.books.database.write() as connection:
            yield connection

    def _tenant(self, tenant: str) -> None:
        self.engine.tenants.create(tenant)
        self.engine.scripts.put(tenant, "job", "export default () => 1")
        self.engine.scripts.put(tenant, "next", "export default () => 2")

    def run(self, steps: int) -> None:
        """Take random steps, each possibly cut short by a crash."""
        verbs: list[tuple[int, Callable[[], str]]] = [
            (24, self.advance), (24, self.tick), (24, self.claim), (20, self.commit), (6, self.rescue), (10, self.renew),
            (3, self.node_dies), (8, self.create), (4, self.edit), (6, self.pause), (8, self.resume), (2, self.delete),
            (4, self.run_now), (3, self.cancel), (1, self.suspend), (3, self.resume_tenant), (1, self.erase_tenant),
            (4, self.step_back), (2, self.once), (3, self.backfill), (3, self.replay),
        ]  # fmt: skip
        for _ in range(steps):
            verb = self.chance.choices([verb for _weight, verb in verbs], [weight for weight, _verb in verbs])[0]
            self.fuse = self.chance.randrange(12) if self.chance.random() < 0.15 else None
            try:
                said = verb()
            except Crash:
                said = "CRASH"
            except InputError as refused:
                said = refused.code
            self.fuse = None
            self.steps[verb.__name__] += 1
            self.trace.append(f"{self.clock.us / 1e6:.6f} {verb.__name__}: {said}")
            self.check()

    # ---- what may happen

    def advance(self) -> str:
        self.clock.advance(self.chance.choice((0.2, 1, 3, 7, 20, 20, 61, 400)))
        return "time passes"

    def step_back(self) -> str:
        self.clock.us -= self.chance.randrange(1, 90) * 1_000_000
        return "the clock steps back"

    def tick(self) -> str:
        with self._transaction() as connection:
            return str(len(clocks.tick(self.books, connection, self.clock.us, self.chance.choice((1, 3, 100)))))

    def _node(self) -> SimNode:
        if len(self.nodes) < 3:
            name = f"n{len(self.trace)}"
            with self._transaction() as connection:
                lease = leases.register(self.books, connection, node_id(name), name, self.clock.us)
            self.nodes.append(SimNode(lease))
        return self.chance.choice(self.nodes)

    def claim(self) -> str:
        node = self._node()
        with self._transaction() as connection:
            taken = claims.claim(self.books, connection, node.lease, self.chance.randrange(1, 5), self.clock.us)
        node.held += taken
        return f"{node.lease.node_id} takes {len(taken)}"

    def commit(self) -> str:
        node = self._node()
        batch = [
            (claim, Finished(outcome, journal=claim if outcome is Outcome.OK else None))
            for claim in node.held
            if self.chance.random() < 0.7
            for outcome in [self.chance.choice(ENDS)]
        ]
        with self._transaction() as connection:
            commits.commit(self.books, connection, node.lease, batch, self.clock.us, _seen)
        node.held = [claim for claim in node.held if all(claim is not done for done, _finished in batch)]
        return f"{node.lease.node_id} ends {len(batch)}"

    def rescue(self) -> str:
        with self._transaction() as connection:
            return str(len(leases.rescue(self.books, connection, self.clock.us).actions))

    def renew(self) -> str:
        node = self._node()
        with self._transaction() as connection:
            kept = leases.renew(self.books, connection, node.lease, self.clock.us)
        # A node that lost its lease may not know it yet: half of them go on and try to commit.
        if not kept and self.chance.random() < 0.5:
            self.nodes.remove(node)
        return f"{node.lease.node_id} {kept}"

    def node_dies(self) -> str:
        node = self._node()
        self.nodes.remove(node)
        return node.lease.node_id

    def create(self) -> str:
        tenant, step = self.chance.choice(TENANTS), self.chance.choice((1, 5, 13, 60, 3600))
        overlap = self.chance.choice(("skip", "queue_one", "queue_all", "cancel_running", "allow"))
        name = f"s{len(self.trace)}"
        made = self.engine.schedules.create(
            tenant, name, script=self.chance.choice(("job", "job", ["job", "next"], ["job", "next", "job"])),
            rules=f"every {step}", overlap=overlap, missed=self._missed(),
            retry=self.chance.choice((None, {"attempts": 3, "backoff_s": 30})),
            jitter_s=self.chance.choice((0, 0, 4, 3600)), expires_s=self.chance.choice((0, 0, 15, 500)),
            priority=self.chance.choice(("high", "normal", "low")), pause_after=self.chance.choice((0, 0, 2)),
        )  # fmt: skip
        self.owed[made.id] = Owed(tenant, name, overlap, [(step * 1_000_000, self.clock.us)])
        return f"{name} {step}s {overlap}"

    def _missed(self) -> str:
        return self.chance.choice(("skip", "latest", "all", "within:60s"))

    def _schedule(self) -> tuple[str, Owed]:
        if not self.owed:
            raise InputError("none", "no schedule yet")
        return self.chance.choice(sorted(self.owed.items(), key=lambda item: item[0]))

    def edit(self) -> str:
        schedule, owed = self._schedule()
        step = self.chance.choice((2, 7, 30, 600))
        accounted = self._scalar("SELECT accounted_us FROM lodger_schedule_clock WHERE schedule_id = :id", schedule)
        self.engine.schedules.edit(owed.tenant_id, schedule, rules=f"every {step}", missed=self._missed())
        owed.segments.append((step * 1_000_000, max(self.clock.us, accounted)))
        return f"{owed.name} {step}s"

    def pause(self) -> str:
        schedule, owed = self._schedule()
        self.engine.schedules.pause(owed.tenant_id, schedule)
        return owed.name

    def resume(self) -> str:
        schedule, owed = self._schedule()
        self.engine.schedules.resume(owed.tenant_id, schedule)
        return owed.name

    def delete(self) -> str:
        schedule, owed = self._schedule()
        self.engine.schedules.delete(owed.tenant_id, schedule)
        self.fuse = None
        self._audit(schedule, owed)
        del self.owed[schedule]
        return owed.name

    def run_now(self) -> str:
        schedule, owed = self._schedule()
        self.engine.actions.run_now(schedule, owed.tenant_id)
        return owed.name

    def once(self) -> str:
        self.engine.run_in(self.chance.choice(TENANTS), "job", self.chance.randrange(100_000))
        return ""

    def backfill(self) -> str:
        schedule, owed = self._schedule()
        end = self.clock.us - self.chance.randrange(100) * 1_000_000
        start = end - 10 * owed.segments[-1][0]
        made = self.engine.actions.backfill(schedule, owed.tenant_id, start=from_us(start), end=from_us(end))
        return f"{owed.name} {len(made.actions)}, {made.left_alone} left alone"

    def replay(self) -> str:
        over = [action for action in self.engine.actions.list(limit=30) if action.state in OVER]
        if over:
            self.engine.actions.replay(self.chance.choice(over).id, newest=self.chance.random() < 0.5)
        return str(len(over))

    def cancel(self) -> str:
        waiting = [action for action in self.engine.actions.list(limit=30) if action.state in {"ready", "running"}]
        if waiting:
            self.engine.actions.cancel(self.chance.choice(waiting).id)
        return str(len(waiting))

    def suspend(self) -> str:
        return self.engine.tenants.suspend(self.chance.choice(TENANTS)).state

    def resume_tenant(self) -> str:
        return self.engine.tenants.resume(self.chance.choice(TENANTS)).state

    def erase_tenant(self) -> str:
        tenant = self.chance.choice(TENANTS)
        self.engine.tenants.delete(tenant)
        self.owed = {schedule: owed for schedule, owed in self.owed.items() if owed.tenant_id != tenant}
        self.fuse = None
        self._tenant(tenant)
        return tenant

    # ---- what must hold

    def _scalar(self, statement: str, schedule: str = "") -> Any:
        with self.books.database.read() as connection:
            return connection.scalar(text(statement), {"id": schedule} if schedule else {})

    def check(self) -> None:
        """Hold every invariant that one look at the ledger can see."""
        with self.books.database.read() as connection:
            for law, statement in LAWS.items():
                found = connection.execute(text(statement)).first()
                if found is not None:
                    self.broken(f"{law}: {tuple(found)}")
        if len(self.trace) % 25 == 0:
            for schedule, owed in self.owed.items():
                self._audit(schedule, owed)

    def _audit(self, schedule: str, owed: Owed) -> None:
        """Every slot up to the accounted instant stands in the ledger exactly once, and no other does."""
        with self.books.database.read() as connection:
            accounted = connection.scalar(
                text("SELECT accounted_us FROM lodger_schedule_clock WHERE schedule_id = :id"), {"id": schedule}
            )
            rows = connection.execute(
                text("SELECT slot, slot_to FROM lodger_actions WHERE schedule_id = :id AND origin = 'slot'"),
                {"id": schedule},
            ).all()
            untried = connection.execute(
                text(
                    "SELECT slot, due_at FROM lodger_actions WHERE schedule_id = :id AND origin = 'slot' AND attempt = 0"
                ),
                {"id": schedule},
            ).all()
        longest = max(step for step, _after in owed.segments)
        for slot, due in untried:
            if not slot <= due < slot + longest:
                self.broken(f"{owed.name}: slot {slot} is due at {due}")
        expected = Counter(owed.slots(accounted))
        singles = {slot for slot, slot_to in rows if slot_to is None}
        stretches = [(slot, slot_to) for slot, slot_to in rows if slot_to is not None]
        found = Counter(slot for slot, slot_to in rows if slot_to is None)
        for slot, slot_to in stretches:
            if slot not in expected or slot_to not in expected:
                self.broken(f"{owed.name}: a gap begins or ends where no slot is")
            found.update(each for each in expected if slot <= each <= slot_to)
        if found != expected:
            lost, extra = expected - found, found - expected
            self.broken(f"{owed.name}: lost {sorted(lost)[:3]}, too many {sorted(extra)[:3]}, of {len(singles)} rows")

    def broken(self, why: str) -> None:
        """Stop with the seed and what came before."""
        raise Broken(f"seed {self.seed}: {why}\n" + "\n".join(self.trace[-25:]))

    def settle(self) -> None:
        """Let the world come to rest: everything resumed, every attempt good, time passing; nothing may be left open."""
        for tenant in TENANTS:
            self.engine.tenants.resume(tenant)
        for schedule, owed in self.owed.items():
            self.engine.schedules.resume(owed.tenant_id, schedule)
            self.engine.schedules.pause(owed.tenant_id, schedule)
        self.nodes.clear()
        for _ in range(400):
            self.clock.advance(60)
            self.rescue()
            self.tick()
            node = SimNode(self._node().lease)
            with self._transaction() as connection:
                taken = claims.claim(self.books, connection, node.lease, 100, self.clock.us)
                batch = [(claim, Finished(Outcome.OK, journal=claim)) for claim in taken]
                commits.commit(self.books, connection, node.lease, batch, self.clock.us, _seen)
            self.nodes.clear()
            self.check()
            if not self._scalar(f"SELECT count(*) FROM lodger_actions WHERE {OPEN}"):
                break
        else:
            self.broken("something never ends")
        for schedule, owed in self.owed.items():
            self._audit(schedule, owed)


def _seen(connection: Connection, claim: Claim, _finished: Finished) -> None:
    seen = {"id": claim.action_id, "step": claim.step, "n": claim.attempt}
    connection.execute(text("INSERT INTO effects_seen VALUES (:id, :step, :n)"), seen)
