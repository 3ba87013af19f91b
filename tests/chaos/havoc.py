"""Chaos run: nodes and their PostgreSQL are killed, suspended, disconnected and restarted at random.

``python -m tests.chaos.havoc --minutes 5 --schedules 3000`` runs it for a given time and prints the result.
"""

import argparse
import random
import select
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from os import close, pidfd_open
from pathlib import Path

from sqlalchemy import Connection
from tests.chaos import exposed_lamps
from tests.chaos.cluster import Node, slay
from tests.chaos.comparison import Comparison, Planned, alive_since, compare, left_open
from tests.databases.relay import Relay
from tests.databases.server import Server, own

from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.clock import SystemClock, from_us
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.recurrence.rule import RuleSpec, ScheduleRules
from lodger.engine.store.context import StoreContext
from lodger.engine.store.schedules import schedules
from lodger.engine.store.schedules.revisions import ScheduleFields
from lodger.engine.sync import Engine

#: Faults with their weights.
DEEDS = {
    "worker": 12, "node": 6, "zygote": 2, "freeze": 2, "database": 1, "backend": 1, "cut": 1, "silence": 2, "answer": 3, "slow": 1,
}  # fmt: skip
#: Blocked directions, and what happens to the connections afterwards.
WAYS = ((), (), ("up",), ("down",))
OLD = ("pass", "reset", "forget")
#: Text that occurs only in the transaction that commits outcomes.
ENDS = b"INSERT INTO lodger_attempts"
PERIODS_S = (5, 7, 10, 15, 20)
CASTS = (("plain",), ("twice",), ("slow",), ("throws",), ("counts",), ("plain", "slow"))
#: A node suspended for this time has lost its lease of three seconds.
LONG_S = 5.0
#: A daily budget that is never reached, so that every query reserves from it.
LIMITS = {"concurrent_runs": 8, "queries_per_day": 1_000_000}
BEGAN_IN_VAIN = ("database_unreachable", "zygote_failed")
SETTINGS = {"LODGER_LEASE_S": "3", "LODGER_SLOTS": "8"}


@dataclass
class Havoc:
    """One chaos run.

    Attributes:
        schedules: number of schedules.
        seconds: duration of slots and faults.
        pause_s: mean time between two faults.
        node_count: number of nodes.
    """

    server: Server
    folder: Path
    schedules: int = 200
    seconds: float = 15.0
    pause_s: float = 0.8
    node_count: int = 4
    seed: int = 1
    spread: int = 1
    deeds: Counter[str] = field(default_factory=Counter)
    planned: list[Planned] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._clock = SystemClock()
        name = self.server.database()
        self._url = self.server.url(name)
        # Each node has its own relay to the server, so that it can be disconnected alone.
        self._relays = [Relay(self.server) for _ in range(self.node_count)]
        self.nodes = [
            Node(f"n{number}", relay.url(name), self.folder, **SETTINGS) for number, relay in enumerate(self._relays)
        ]
        self._later: list[tuple[float, Callable[[], None]]] = []

    def run(self, say: Callable[[str], None] = lambda _said: None) -> Comparison:
        """Run the chaos, wait until all actions are finished, and return the reckoning.

        Raises:
            AssertionError: a node ended by itself, or actions stay unfinished.
        """
        settings = Settings(min_interval_s=1, schedules_per_tenant=10_000)
        try:
            with Engine.open(self._url, settings=settings) as engine:
                self._prepare(engine)
                for node in self.nodes:
                    node.start()
                self._furnish(engine)
                say(
                    f"{self.schedules} schedules of {self._tenants()} tenants, {sum(len(each.slots()) for each in self.planned)} slots"
                )
                self._cause_faults(say)
                say(f"done to them: {dict(self.deeds)}; now they are left in peace")
                self._rest(engine)
                assert [node.stop() for node in self.nodes] == [0] * len(self.nodes)
                found = compare(engine, self.planned)
                found.faults += [f"{node.name} said {line}" for node in self.nodes for line in node.about("Traceback")]
                return found
        finally:
            for node in self.nodes:
                node.kill()
            for relay in self._relays:
                relay.close()

    def _tenants(self) -> int:
        return max(2, self.schedules // 50)

    def _prepare(self, engine: Engine) -> None:
        exposed_lamps.traces.metadata.create_all(engine.context.database.engine)
        exposed_lamps.expose(engine)
        engine.prepare()
        for tenant in range(self._tenants()):
            engine.tenants.create(f"t{tenant}", grants=["sets:write", "kv"], limits=LIMITS)
            for name, (source, _marks) in exposed_lamps.SCRIPTS.items():
                engine.scripts.put(f"t{tenant}", name, source)

    def _furnish(self, engine: Engine) -> None:
        # The first slots come due when all schedules exist; on a busy machine earlier, and are caught up.
        begin_us = engine.context.clock.now_us() + 3_000_000 + 40_000 * self.schedules
        end_us = begin_us + round(self.seconds * 1_000_000)
        context = engine.context
        for tenant in range(self._tenants()):
            # One tenant per transaction, because each is locked.
            with context.database.write() as connection:
                for number in range(tenant, self.schedules, self._tenants()):
                    self._schedule(context, connection, number, begin_us, end_us)
        self._begin_us, self._end_us = begin_us, end_us

    def _schedule(self, context: StoreContext, connection: Connection, number: int, begin_us: int, end_us: int) -> None:
        pick = self._chance.choice
        tenant, cast, period_s = f"t{number % self._tenants()}", pick(CASTS), pick(PERIODS_S) * self.spread
        first_us = begin_us + self._chance.randrange(round(min(period_s, self.seconds / 2) * 1_000)) * 1_000
        rule = RuleSpec(f"every {period_s}s", dtstart=from_us(first_us).isoformat())
        wish = ScheduleFields(
            list(cast) if len(cast) > 1 else cast[0],
            context.revision_cache.prepare(
                ScheduleRules((rule,), end=from_us(end_us)), from_us(begin_us), from_us(begin_us)
            ),
            pick(("skip", "latest", "all", "within:5s")),
            pick(("skip", "queue_all", "allow")),
            pick((None, {"attempts": 2, "backoff_s": 1})),
        )
        now_us, audit_context = context.clock.now_us(), AuditContext("chaos", "python")
        made = schedules.create(context, connection, tenant, f"s{number}", wish, now_us, audit_context, begin_us)
        self.planned.append(Planned(tenant, made.id, cast, first_us, period_s * 1_000_000, end_us))

    # ---- faults

    def _cause_faults(self, say: Callable[[str], None]) -> None:
        """Cause faults at random until the time is over."""
        names, weights = list(DEEDS), list(DEEDS.values())
        self._wait_until(self._clock.elapsed_s() + max(0.0, (self._begin_us - self._clock.now_us()) / 1_000_000))
        reported_s = until_s = self._clock.elapsed_s()
        until_s += self.seconds
        while self._clock.elapsed_s() < until_s:
            self._wait_until(self._clock.elapsed_s() + self._chance.expovariate(1 / self.pause_s))
            deed = self._chance.choices(names, weights)[0]
            if getattr(self, f"_{deed}")():
                self.deeds[deed] += 1
            if self._clock.elapsed_s() - reported_s > 20:
                reported_s = self._clock.elapsed_s()
                say(f"{until_s - reported_s:.0f} s to go: {dict(self.deeds)}")

    def _wait_until(self, until_s: float) -> None:
        """Wait, and run delayed actions; fail if a node ends by itself."""
        while (now_s := self._clock.elapsed_s()) < until_s:
            due = [each for each in self._later if each[0] <= now_s]
            self._later = [each for each in self._later if each[0] > now_s]
            for _at, what in due:
                what()
            for node in self.nodes:
                ended = node.ended()
                if ended is None:
                    continue
                # A node that starts without a database, or with its first zygote killed, reports it and ends; a supervisor
                # would restart it.
                assert node.young, ended
                assert any(code in ended for code in BEGAN_IN_VAIN), ended
                self.deeds["began in vain"] += 1
                node.kill()
                self._do_later(1.0, node.start)
            self._pass(min([until_s, *(at for at, _what in self._later)]) - now_s)

    def _pass(self, seconds: float) -> None:
        """Wait for some time, or until a node ends."""
        handles = [pidfd_open(node.pid) for node in self.nodes if node.up]
        try:
            select.select(handles, [], [], max(0.0, seconds))
        finally:
            for handle in handles:
                close(handle)

    def _do_later(self, seconds: float, what: Callable[[], None]) -> None:
        """Call a function after some seconds."""
        self._later.append((self._clock.elapsed_s() + seconds, what))

    def _running_node(self) -> Node | None:
        """Return a node that runs, drawn at random; None if none does."""
        up = [node for node in self.nodes if node.up and not node.frozen]
        return self._chance.choice(up) if up else None

    def _worker(self) -> bool:
        """Kill a worker; return whether there was one."""
        node = self._running_node()
        workers = node.workers() if node else []
        return bool(workers) and slay(self._chance.choice(workers))

    def _zygote(self) -> bool:
        """Kill a zygote or launcher; return whether there was one."""
        node = self._running_node()
        zygotes = node.zygotes() if node else []
        return bool(zygotes) and slay(self._chance.choice(zygotes))

    def _node(self) -> bool:
        """Kill a node, which starts again later; return whether there was one."""
        node = self._running_node()
        if node is None:
            return False
        node.kill()
        self._do_later(self._chance.uniform(0.1, 3.0), node.start)
        return True

    def _freeze(self) -> bool:
        """Suspend a node for a while; return whether there was one."""
        node = self._running_node()
        if node is None:
            return False
        node.freeze()
        self._do_later(self._chance.choice((0.3, LONG_S, LONG_S)), node.thaw)
        return True

    def _database(self) -> bool:
        """Kill the server with all its processes, as at a power failure, and restart it."""
        self.server.slay()
        self._do_later(self._chance.uniform(0.1, 2.0), self.server.start)
        self._wait_until(self._clock.elapsed_s() + 2.1)
        return True

    def _backend(self) -> bool:
        """Kill one backend of the server, which then ends all others and recovers."""
        return self.server.slay_one(self._chance)

    def _network(self) -> Relay:
        """Return the relay of one node, drawn at random."""
        return self._chance.choice(self._relays)

    def _cut(self) -> bool:
        """Reset the connections of one node, and refuse new ones for a while."""
        relay = self._network()
        relay.cut()
        self._do_later(self._chance.choice((0.1, 1.0, LONG_S)), relay.heal)
        return True

    def _silence(self) -> bool:
        """Block traffic between one node and the server in one or both directions; some connections stay blocked."""
        relay, old = self._network(), self._chance.choice(OLD)
        relay.silence(*self._chance.choice(WAYS))
        self._do_later(self._chance.choice((0.3, LONG_S, LONG_S)), lambda: relay.heal(old))
        return True

    def _answer(self) -> bool:
        """Lose the next commit of outcomes of a node, or only its reply."""
        relay = self._network()
        self._chance.choice((relay.lose_answer, relay.lose_commit))(ENDS)
        return True

    def _slow(self) -> bool:
        """Delay the traffic between one node and the server."""
        relay = self._network()
        relay.slow(0.02)
        self._do_later(self._chance.uniform(0.5, 3.0), lambda: relay.slow(0.0))
        return True

    # ---- the end

    def _rest(self, engine: Engine) -> None:
        """Wait until all actions are finished and all nodes are up: one that still waits for the database is ended by SIGTERM itself."""
        self._wait_until(self._clock.elapsed_s() + 6.0)
        for node in self.nodes:
            if node.frozen:
                node.thaw()
        for relay in self._relays:
            relay.heal("reset")
        patience_s = self._clock.elapsed_s() + 400 + 3 * self.seconds
        healed_us, left, up = engine.context.clock.now_us(), -1, 0
        while left or up < len(self.nodes):
            with suppress(Unavailable):
                left, up = left_open(engine), alive_since(engine, healed_us)
            assert self._clock.elapsed_s() < patience_s, f"{left} never end, {up} are up; {self.nodes[0].words()}"
            self._wait_until(self._clock.elapsed_s() + 0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--schedules", type=int, default=3000)
    parser.add_argument("--spread", type=int, default=10, help="periods are so many times as long as in the suite")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two deeds")
    parser.add_argument("--seed", type=int, default=1)
    reported = parser.parse_args()
    server = durable()
    try:
        with tempfile.TemporaryDirectory(prefix="lodger-chaos-") as folder:
            havoc = Havoc(
                server,
                Path(folder),
                reported.schedules,
                reported.minutes * 60,
                reported.pause,
                4,
                reported.seed,
                reported.spread,
            )
            found = havoc.run(_say)
    finally:
        server.remove()
    sys.stdout.write(f"{found}\n")
    for each in (*found.lost[:50], *found.doubled[:50], *found.faults[:50]):
        sys.stdout.write(f"  {each}\n")
    sys.exit(bool(found.lost or found.doubled))


def _say(said: str) -> None:
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()


def durable() -> Server:
    """Return a separate server with durable commits."""
    server = own()
    server.settings |= {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    server.stop(signal.SIGINT)
    server.start()
    return server


if __name__ == "__main__":
    main()
