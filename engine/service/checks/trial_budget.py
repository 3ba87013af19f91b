"""CPU time budget of trials and of checks of sources and modules, charged to the tenant's UTC day."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lodger.engine.core.context_values import holding
from lodger.engine.core.errors import Conflict
from lodger.engine.store.context import StoreContext
from lodger.engine.store.usage import usage

_collected: ContextVar[list[float] | None] = ContextVar("collected", default=None)


class TrialBudget:
    """Budget ``cpu_s`` of a day, for work that is not an attempt of an action."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context

    def used_up(self, tenant_id: str) -> str:
        """Return why the tenant has no CPU time left today, "" if it has."""
        with self._context.database.read() as connection:
            return usage.used_up(self._context, connection, tenant_id)

    def require(self, tenant_id: str) -> None:
        """Check that the tenant has CPU time left today.

        Raises:
            Conflict: budget_used_up.
        """
        why = self.used_up(tenant_id)
        if why:
            raise Conflict("budget_used_up", reason=why)

    def charge(self, tenant_id: str, cpu_ms: float) -> None:
        """Add CPU time to the tenant's usage of the day; ignored if the tenant was deleted meanwhile."""
        collected = _collected.get()
        if collected is not None:
            collected.append(cpu_ms)
        elif cpu_ms > 0:
            self._write(tenant_id, cpu_ms)

    def _write(self, tenant_id: str, cpu_ms: float) -> None:
        """Add CPU time to the tenant's usage of the day, in a transaction of its own."""
        with self._context.database.write() as connection:
            usage.charge_trial(self._context, connection, tenant_id, cpu_ms)

    @contextmanager
    def collecting(self, tenant_id: str) -> Iterator[list[float]]:
        """Collect the charges of a block, which the caller writes with its change; if the block fails they are written at once."""
        charges: list[float] = []
        try:
            with holding(_collected, charges):
                yield charges
        except BaseException:
            if sum(charges) > 0:
                self._write(tenant_id, sum(charges))
            raise
