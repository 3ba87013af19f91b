"""Laws of liveness: due slots are ticked, ready actions start, and actions of a lost node run elsewhere, all in time.

Checked once per virtual second while there are no faults of machines. If more comes due than the nodes can tick, all ticks are full and
lateness grows, but the oldest slots are ticked first.
"""

from typing import TYPE_CHECKING

from tests.sim.simulator.laws import Broken
from tests.sim.simulator.mirror import Transaction

if TYPE_CHECKING:
    from tests.sim.simulator.world import World

#: Seconds without faults before the checks: enough for a lost node's lease to end and its actions to be taken over.
QUIET_S = 12.0
#: Maximum lateness of a tick, difference between ledger and workers, and wait of a tenant with ready actions while a node has a free
#: slot. Seconds.
LATE_S, WAIT_S = 3.0, 12.0


def begin(world: "World") -> None:
    """Check a world once per virtual second."""

    def look() -> None:
        if world.loop.time() - world.disturbed_s > QUIET_S:
            try:
                _look(world)
            except Broken as broken:
                world.breaks(broken)
                return
        world.later(1.0, look)

    world.later(1.0, look)


def _look(world: "World") -> None:
    """Check what must hold while no fault has happened for a while."""
    world.figures["looks in quiet"] += 1
    mirror, now = world.mirror, world.clock.now_us()
    machines = [machine for machine in world.machines if machine.node is not None]
    up = [machine.node for machine in machines if machine.node is not None]
    if len(up) < len(world.machines) or any(
        each.process is not None and each.process.frozen for each in world.machines
    ):
        return  # a node is starting or suspended, which counts as a fault
    _ticked(world, now, full=any(node.loop.behind_s is not None for node in up))
    for line, turn in mirror.turns.items():
        waits_s = min(world.loop.time() - mirror.served_s[line[0]], (now - (turn.startable_at or now)) / 1_000_000)
        if waits_s > WAIT_S and any(world.may(machine, turn) for machine in machines):
            raise Broken("no tenant starves", f"{line} waits for {waits_s:.1f} s")
    _at_work(world)
    living = {node.id for node in up}
    for node, running in mirror.running_on.items():
        if running and node not in living:
            raise Broken("what a lost node ran runs elsewhere", f"{len(running)} of {node}")


def _ticked(world: "World", now: int, *, full: bool) -> None:
    """Check that no slot is late; while ticks are full, that the oldest late slot advances."""
    late: list[tuple[int, str]] = []
    for schedule, hand in world.mirror.clocks.items():
        tenant = world.mirror.tenants.get(hand.tenant)
        if tenant is None or tenant.state != "active":
            continue
        due = hand.next_at if hand.state == "armed" else hand.wake_at
        if due is not None and due < now - LATE_S * 1_000_000:
            late.append((due, schedule))
    oldest = min(late, default=None)
    if oldest is None or oldest != world.oldest[0]:
        world.oldest = (oldest, world.loop.time())
    if oldest is not None and not (full and world.loop.time() - world.oldest[1] <= LATE_S):
        raise Broken("what is due is ticked", f"{oldest[1]} is {(now - oldest[0]) / 1e6:.1f} s late")
    if oldest is not None:
        world.figures["looks in overload"] += 1


def _at_work(world: "World") -> None:
    """Check that the ledger's running actions are those of the executors, apart from short transitions."""
    mirror, now_s = world.mirror, world.loop.time()
    odd: dict[tuple[str, str, int], float] = {}
    for machine in world.machines:
        node, workers = machine.node, machine.workers
        if node is None or workers is None or node.lease is None:
            continue
        mine = {(key, mirror.actions[key].attempt) for key in mirror.running_on[node.id]}
        odd |= {("what is a node's no more is killed", *key): now_s for key in workers.at_work - mine}
        odd |= {("what runs is at work", *key): now_s for key in mine - workers.at_work - node.attempts.ended}
    world.odd = {key: world.odd.get(key, since_s) for key, since_s in odd.items()}
    for (law, action, attempt), since_s in world.odd.items():
        if now_s - since_s > LATE_S:
            raise Broken(law, f"{action} attempt {attempt}, for {now_s - since_s:.1f} s")


def check_lost_leases(world: "World", transaction: Transaction) -> None:
    """Check that the workers of a node with an expired lease have ended, unless it is suspended."""
    if world.loop.time() - world.warped_s <= world.settings.lease_s:
        return
    for key, (old, new) in transaction.nodes.items():
        if old is None or new is None or (old.state, new.state) != ("alive", "lost"):
            continue
        for machine in world.machines:
            if machine.node is None or machine.node.id != key or machine.workers is None or machine.process is None:
                continue
            if machine.workers.at_work and not machine.process.frozen:
                raise Broken("a node that loses its lease has killed its workers", machine.node.name)
