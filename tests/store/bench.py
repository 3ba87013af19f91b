"""What the ledger's tests do again and again: tenants, schedules, ticks, claims, commits, by hand on a standing clock."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import text
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.clock import from_us
from lodger.engine.core.execution import Claim
from lodger.engine.effects import outcome_commit
from lodger.engine.effects.finished import Finished
from lodger.engine.effects.outcome_commit import Committed
from lodger.engine.store.lifecycle import claims, leases
from lodger.engine.store.lifecycle import tick as clocks
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.lifecycle.leases import Rescued
from lodger.engine.store.lifecycle.tick import Ticked
from lodger.engine.store.records import Action, Schedule
from lodger.engine.sync import Engine
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

OK = Finished(Outcome.OK, result='{"done":true}')
THROWN = Finished(Outcome.SCRIPT_ERROR, error=ScriptError("Error", "no", line=3))


def node_id(name: str) -> str:
    """Return the id of a node that the tests call by this name."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


@dataclass
class Bench:
    """An engine, its clock, and one node's lease."""

    engine: Engine
    clock: VirtualClock
    nodes: dict[str, Lease] = field(default_factory=dict)

    def tenant(self, tenant_id: str = "acme", **limits: int) -> str:
        """Create a tenant with a script ``job``; return its id."""
        self.engine.tenants.create(tenant_id, limits=limits)
        self.engine.scripts.put(tenant_id, "job", "export default () => 1")
        return tenant_id

    def schedule(self, rules: str = "every 60s", tenant_id: str = "acme", name: str = "s", **terms: object) -> Schedule:
        return self.engine.schedules.create(tenant_id, name, script="job", rules=rules, **terms)  # type: ignore[arg-type]  # forwarded

    def tick(self) -> list[Ticked]:
        """Store what has come due; return the schedules that were advanced."""
        with self.engine.context.database.write() as connection:
            return clocks.tick(self.engine.context, connection, self.clock.us)

    def lease(self, node: str = "n1") -> Lease:
        """Return the lease of a node, which is registered at the first call."""
        if node not in self.nodes:
            with self.engine.context.database.write() as connection:
                self.nodes[node] = leases.register(self.engine.context, connection, node_id(node), node, self.clock.us)
        return self.nodes[node]

    def renew(self, node: str = "n1") -> bool:
        with self.engine.context.database.write() as connection:
            return leases.renew(self.engine.context, connection, self.lease(node), self.clock.us) is not None

    def claim(self, free: int = 100, node: str = "n1", *, wait: bool = True) -> list[Claim]:
        """Claim up to so many actions for a node."""
        lease = self.lease(node)
        with self.engine.context.database.write() as connection:
            return claims.claim(self.engine.context, connection, lease, free, self.clock.us, wait=wait)()

    def commit(
        self, *claimed: Claim, finished: Finished | Callable[[Claim], Finished] = OK, node: str = "n1"
    ) -> Committed:
        """Commit the ends of claimed actions."""
        batch = [(each, finished(each) if callable(finished) else finished) for each in claimed]
        with self.engine.context.database.write() as connection:
            return outcome_commit.commit(self.engine.context, connection, self.lease(node), batch, self.clock.us)

    def mend(self) -> bool:
        """Mend what a clock that was set back has left; return whether there was anything."""
        with self.engine.context.database.write() as connection:
            found = leases.find_overdue(self.engine.context, connection, self.clock.us).in_future
            leases.reset_future(self.engine.context, connection, self.clock.now_us)
        return found

    def rescue(self) -> Rescued:
        """Take back the actions of nodes whose leases have expired."""
        with self.engine.context.database.write() as connection:
            return leases.rescue(self.engine.context, connection, self.clock.us)

    def run(self, finished: Finished = OK) -> list[Claim]:
        """Claim everything that may start, and commit it."""
        claimed = self.claim()
        self.commit(*claimed, finished=finished)
        return claimed

    def actions(self, schedule: Schedule | None = None, tenant_id: str | None = None) -> list[Action]:
        """Every action, oldest slot first."""
        found = self.engine.actions.list(tenant_id, schedule.id if schedule else None, limit=10_000)
        return sorted(found, key=lambda action: (action.due_at, action.id))

    def states(self, schedule: Schedule | None = None) -> list[str]:
        return [action.state for action in self.actions(schedule)]

    def seconds(self, action: Action) -> tuple[float, float | None]:
        """Slot and end of the gap in seconds since the clock's beginning."""
        start = VirtualClock().us
        assert action.slot is not None
        begin = (action.slot - from_us(start)).total_seconds()
        return begin, None if action.slot_to is None else (action.slot_to - from_us(start)).total_seconds()

    def scalar(self, statement: str) -> object:
        with self.engine.context.database.read() as connection:
            return connection.scalar(text(statement))
