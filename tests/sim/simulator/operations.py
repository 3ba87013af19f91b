"""Operations of users and platforms: create, edit and pause schedules, request and cancel actions, suspend tenants."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.sim.simulator.laws import Broken
from tests.sim.simulator.loop import PROCESS
from tests.sim.simulator.mirror import OVER
from tests.sim.simulator.plan import BOUND, LABEL

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import NotFound
from lodger.engine.sync import Engine

if TYPE_CHECKING:
    from tests.sim.simulator.world import World


class Operations:
    """Operations of plans; every public method is a verb."""

    def __init__(self, world: "World") -> None:
        self._world = world
        #: name → (tenant, schedule id)
        self.schedules: dict[str, tuple[str, str]] = {}

    @property
    def _engine(self) -> Engine:
        """Return the engine of the operator's process, or sometimes that of an embedded node."""
        world = self._world
        up = [
            each.engine
            for each in world.machines
            if each.engine is not None and each.process and not each.process.frozen
        ]
        return world.chance.choice(up) if up and world.chance.random() < 0.3 else world.engine

    def _do(self, fuse: int | None, work: Callable[[], Any]) -> Any:
        """Do something as the operator, interrupted after ``fuse`` statements."""
        token = PROCESS.set(self._world.operator)
        try:
            return self._world.faults.cut(fuse, work)
        finally:
            PROCESS.reset(token)

    def _known_schedule(self, name: str) -> tuple[str, str]:
        """Return tenant and id of a schedule by name; raises NotFound."""
        if name not in self.schedules:
            raise NotFound("action_unknown", action="never made")
        return self.schedules[name]

    def tenant(self, tenant: str) -> None:
        """Create a tenant with its scripts."""
        engine = self._world.engine
        limits = {"fetches_per_day": 1_000_000} if self._world.plan.shape.draws else None
        engine.tenants.create(tenant, labels=LABEL if tenant == BOUND else "", limits=limits)
        engine.scripts.put(tenant, "job", "export default () => 1")
        engine.scripts.put(tenant, "next", "export default () => 2")

    def create(
        self, tenant: str, name: str, rule: dict[str, Any], owed_s: float | None, fuse: int | None, **terms: Any
    ) -> str:
        """Create a schedule; with ``owed_s`` it starts in the past."""
        world = self._world
        first = None if owed_s is None else from_us(world.clock.now_us() - round(owed_s * 1_000_000))
        asked = world.register_rule(rule) | terms | {"first_after": first}
        made = self._do(fuse, lambda: self._engine.schedules.create(tenant, name, **asked))
        self.schedules[name] = (tenant, made.id)
        return str(made.id)

    def edit(self, name: str, fuse: int | None, rule: dict[str, Any] | None = None, **change: Any) -> str:
        """Change a schedule's rules or policies, or both."""
        tenant, schedule = self._known_schedule(name)
        asked = change if rule is None else self._world.register_rule(rule) | change
        edited = self._do(fuse, lambda: self._engine.schedules.edit(tenant, schedule, **asked))
        for field in ("missed", "overlap"):
            if field in change and getattr(edited, field) != change[field]:
                raise Broken("an edit changes what it says", f"{name}: {field}")
        return f"revision {edited.revision}"

    def pause(self, name: str, for_s: float | None, fuse: int | None) -> str:
        """Pause a schedule, for a time or indefinitely."""
        tenant, schedule = self._known_schedule(name)
        until = None if for_s is None else from_us(self._world.clock.now_us() + round(for_s * 1_000_000))
        return str(self._do(fuse, lambda: self._engine.schedules.pause(tenant, schedule, until=until)).state)

    def resume(self, name: str, fuse: int | None) -> str:
        """Resume a schedule."""
        tenant, schedule = self._known_schedule(name)
        return str(self._do(fuse, lambda: self._engine.schedules.resume(tenant, schedule)).state)

    def delete(self, name: str, fuse: int | None) -> str:
        """Delete a schedule."""
        tenant, schedule = self._known_schedule(name)
        return str(self._do(fuse, lambda: self._engine.schedules.delete(tenant, schedule)).state)

    def run_now(self, name: str, key: str | None) -> str:
        """Run a schedule's script now; the same key twice is one action."""
        tenant, schedule = self._known_schedule(name)
        first = self._do(
            None, lambda: self._engine.actions.run_now(tenant, schedule, request_key=key and f"{key} {name}")
        )
        return str(first.id)

    def once(self, tenant: str, in_s: float, key: str | None) -> str:
        """Create a one-off action."""
        asked = self._do(None, lambda: self._engine.run_in(tenant, "job", in_s * 1000, request_key=key))
        if key is not None:
            again = self._do(None, lambda: self._engine.run_in(tenant, "job", in_s * 1000, request_key=key))
            if again.id != asked.id:
                raise Broken("a request key asks once", f"{asked.id} and {again.id}")
        return str(asked.id)

    def backfill(self, name: str, back_s: float, fuse: int | None) -> str:
        """Backfill the last seconds of a schedule."""
        tenant, schedule = self._known_schedule(name)
        now = self._world.clock.now_us()
        start, end = from_us(now - round(back_s * 1_000_000)), from_us(now)
        made = self._do(fuse, lambda: self._engine.actions.backfill(tenant, schedule, start=start, end=end))
        return f"{len(made.actions)}, {made.left_alone} left alone"

    def replay(self, pick: int, newest: bool) -> str:
        """Replay a finished action."""
        return self._apply_to_picked(
            pick, lambda state: state in OVER, lambda engine, key: engine.actions.replay(None, key, newest=newest)
        )

    def cancel(self, pick: int, fuse: int | None) -> str:
        """Cancel an unfinished action."""
        return self._apply_to_picked(
            pick, lambda state: state not in OVER, lambda engine, key: engine.actions.cancel(None, key), fuse
        )

    def _apply_to_picked(
        self, pick: int, which: Callable[[str], bool], verb: Callable[[Engine, str], Any], fuse: int | None = None
    ) -> str:
        """Apply a verb to one of the actions in certain states."""
        mirror = self._world.mirror
        keys = sorted(key for key, action in mirror.actions.items() if which(action.state))
        if not keys:
            return "none"
        key = keys[-1 - pick % min(len(keys), 60)]
        self._do(fuse, lambda: verb(self._engine, key))
        return key

    def put_script(self, tenant: str) -> str:
        """Upload a new version."""
        return str(
            self._do(
                None, lambda: self._engine.scripts.put(tenant, "job", f"export default () => {len(self.schedules)}")
            )
        )

    def suspend(self, tenant: str, fuse: int | None) -> str:
        """Suspend a tenant."""
        return str(self._do(fuse, lambda: self._engine.tenants.suspend(tenant)).state)

    def resume_tenant(self, tenant: str, fuse: int | None) -> str:
        """Resume a tenant."""
        return str(self._do(fuse, lambda: self._engine.tenants.resume(tenant)).state)

    def recreate(self, tenant: str, fuse: int | None) -> str:
        """Delete a tenant and create it again with the same id."""
        self._do(fuse, lambda: self._engine.tenants.delete(tenant))
        self.tenant(tenant)
        return ""

    def rest(self) -> None:
        """Pause all schedules, so that all actions can be finished."""
        world = self._world
        for tenant in world.engine.tenants.list():
            world.engine.tenants.resume(tenant.id)
            for schedule in world.engine.schedules.list(tenant.id):
                if schedule.state in {"armed", "paused"}:
                    world.engine.schedules.pause(tenant.id, schedule.id)
