"""Recovery times with default settings: until the actions of a killed worker, a killed node or a disconnected node run again.

``python -m tests.chaos.recovery [--times 10]`` prints every sample: from the kill to the start of the next attempt, and from
the end of a network failure to the node's new lease.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import text
from tests.chaos import exposed_lamps
from tests.chaos.cluster import Node, cpu_ticks, pause, slay
from tests.databases.relay import Relay
from tests.databases.server import own

from lodger.engine.core.clock import SystemClock
from lodger.engine.store.records import Attempt
from lodger.engine.sync import Engine

#: Long enough to be running when it is killed, on any machine.
LONG = "export default () => { for (;;) ; }"
LIMITS = {"cpu_ms": 30_000, "wall_ms": 120_000}
ALIVE = "SELECT 1 FROM lodger_nodes WHERE state = 'alive' AND lease_until_us > :now HAVING count(DISTINCT name) = 2"


@dataclass
class Pair:
    """Two nodes on one ledger."""

    engine: Engine
    nodes: list[Node]
    relays: dict[str, Relay]
    back_s: list[float] = field(default_factory=list)
    #: What the ledger says of each attempt that was ended.
    ended: list[Attempt] = field(default_factory=list)

    def wait(self, question: str, seconds: float, **given: object) -> tuple[object, ...]:
        """Poll the ledger until a query has a row, and return it.

        Raises:
            AssertionError: there is none within the time.
        """
        clock = SystemClock()
        until_s = clock.elapsed_s() + seconds
        while clock.elapsed_s() < until_s:
            with self.engine.context.database.read() as connection:
                found = connection.execute(text(question), given).first()
            if found is not None:
                return tuple(found)
            pause(0.01)
        raise AssertionError(f"{question} {given}: no answer; " + "\n".join(node.words() for node in self.nodes))

    def begin(self) -> tuple[str, Node]:
        """Start a long action, once both nodes are up, and return its id and the node that runs it."""
        for node in self.nodes:
            if not node.up:
                node.start()
        self.both_up()
        asked = self.engine.run_in("acme", "long", 0)
        return asked.id, self.running(asked.id, 1)[0]

    def running(self, action: str, attempt: int) -> tuple[Node, int]:
        """Wait for an attempt and return its node and start time."""
        name, started_us = self.wait(
            "SELECT n.name, a.started_us FROM lodger_actions a JOIN lodger_nodes n ON n.id = a.node_id "
            "WHERE a.id = :action AND a.attempt = :attempt AND a.state = 'running'",
            60,
            action=action,
            attempt=attempt,
        )
        return next(node for node in self.nodes if node.name == name), int(str(started_us))

    def worker_s(self) -> float:
        """Kill a worker during its script and return the time until the script starts again."""
        action, node = self.begin()
        now_us = self.engine.context.clock.now_us
        while cpu_ticks(busiest := max(node.workers(), key=cpu_ticks)) < 20:
            pause(0.02)
        killed_us = now_us()
        assert slay(busiest)
        _node, started_us = self.running(action, 2)
        self._end(action)
        return (started_us - killed_us) / 1_000_000

    def node_s(self) -> float:
        """Kill a node and return the time until the other one runs its action."""
        action, node = self.begin()
        killed_us = self.engine.context.clock.now_us()
        node.kill()
        other, started_us = self.running(action, 2)
        assert other is not node
        self._end(action)
        return (started_us - killed_us) / 1_000_000

    def silence_s(self) -> float:
        """Block a node's traffic to the server and return the time until the other one runs its action."""
        action, node = self.begin()
        clock, relay = self.engine.context.clock, self.relays[node.name]
        cut_us = clock.now_us()
        relay.silence()
        other, started_us = self.running(action, 2)
        assert other is not node
        self._end(action)
        healed_us = clock.now_us()
        # Open connections stay blocked, as behind a load balancer that lost its state.
        relay.heal("forget")
        self.both_up()
        self.back_s.append((clock.now_us() - healed_us) / 1_000_000)
        return (started_us - cut_us) / 1_000_000

    def _end(self, action: str) -> None:
        self.ended.append(self.engine.actions.attempts(None, action)[0])
        self.engine.actions.cancel(None, action)
        self.wait("SELECT id FROM lodger_actions WHERE id = :action AND state = 'cancelled'", 60, action=action)

    def both_up(self) -> None:
        """Wait until both nodes are registered."""
        self.wait(ALIVE, 90, now=self.engine.context.clock.now_us())


@contextmanager
def pair(folder: Path) -> Iterator[Pair]:
    """Yield two nodes with default settings on a separate PostgreSQL."""
    server = own()
    nodes: list[Node] = []
    relays = {name: Relay(server) for name in ("one", "two")}
    try:
        database = server.database()
        with Engine.open(server.url(database)) as engine:
            engine.tenants.create("acme", limits=LIMITS)
            engine.scripts.put("acme", "long", LONG)
            exposed_lamps.traces.metadata.create_all(engine.context.database.engine)
            nodes += [Node(name, relay.url(database), folder) for name, relay in relays.items()]
            for node in nodes:
                node.start()
            made = Pair(engine, nodes, relays)
            made.both_up()
            yield made
    finally:
        for node in nodes:
            node.kill()
        for relay in relays.values():
            relay.close()
        server.remove()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory(prefix="lodger-recovery-") as folder, pair(Path(folder)) as nodes:
        measured: dict[str, Callable[[], float]] = {
            "worker killed": nodes.worker_s,
            "node killed": nodes.node_s,
            "network silent": nodes.silence_s,
        }
        for what, measure in measured.items():
            _print_times(what, [measure() for _ in range(times)])
        _print_times("back when the network speaks", nodes.back_s)


def _print_times(what: str, took_s: list[float]) -> None:
    """Print the median and the longest of measured times."""
    took_s = sorted(took_s)
    reported = ", ".join(f"{each:.2f}" for each in took_s)
    sys.stdout.write(f"{what}: median {took_s[len(took_s) // 2]:.2f} s, most {took_s[-1]:.2f} s ({reported})\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
