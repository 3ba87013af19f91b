"""Checks of an attempt's effects against day budgets and storage, in the transaction that commits them.

Other attempts may have ended while this one ran, so that the usage it started with is outdated. The caller holds the
tenant's lock, so that usage does not change here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from sqlalchemy import Connection

from lodger.engine.core.execution import Claim, Finished
from lodger.engine.effects.commit_errors import NotApplied
from lodger.engine.effects.effect import CancelRun, Effect, Emit, KvAdd, KvSet, Mail, RunLater
from lodger.engine.effects.journal import Journal
from lodger.engine.effects.write_set import ROW_EFFECTS
from lodger.engine.policy import budget_table
from lodger.engine.policy.budget_table import BUDGETS, STORAGE, Overdrawn
from lodger.engine.store.context import StoreContext
from lodger.engine.store.usage import budget_reservations, storage_usage, usage
from lodger.engine.store.usage.usage import DayUsage
from lodger.sandbox.outcome import Outcome

#: Maximum number of bytes that one written row or key adds to a tenant's stored data.
MAX_ROW_BYTES = 256 * 1024
#: Effects that use one of a budget each.
_COUNTED = {"events": (Emit,), "later_runs": (RunLater,), "rows_written": (*ROW_EFFECTS, KvSet, KvAdd, CancelRun)}
_EFFECTS = tuple(spec.name for spec in BUDGETS if spec.effect)


class BudgetExceeded(NotApplied):
    """The effects would exceed a budget of the day, or the tenant's storage."""

    outcome = Outcome.CALL_LIMIT

    def __init__(self, overdrawn: Overdrawn, effects: Sequence[Effect]) -> None:
        index = _first_over(overdrawn, effects)
        place = effects[index].line if index < len(effects) else None
        super().__init__("budget_exceeded", overdrawn.message, index=index, place=place)


def _first_over(overdrawn: Overdrawn, effects: Sequence[Effect]) -> int:
    """Return the index of the first effect that exceeds the budget; 0 if no single one does."""
    room = overdrawn.limit - overdrawn.used
    for index, effect in enumerate(effects):
        if overdrawn.name == "mails" and isinstance(effect, Mail):
            room -= len(effect.to)
        else:
            room -= isinstance(effect, _COUNTED.get(overdrawn.name, ()))
        if room < 0:
            return index
    return 0


class BudgetChecks:
    """Day budgets and stored bytes of the tenants of one batch of ended attempts."""

    def __init__(self, context: StoreContext, connection: Connection, now_us: int) -> None:
        self.day = now_us // usage.DAY_US
        self._context = context
        self._connection = connection
        self._known: dict[str, DayUsage] = {}
        self._stored: dict[str, int] = {}
        self._ended: Counter[tuple[str, str]] = Counter()
        self._held: dict[str, dict[str, int]] = {}
        self._near_limit = False
        self._answers: tuple[Callable[[], dict[str, DayUsage]], Callable[[], dict[str, int]]] | None = None

    def ask(self, batch: Iterable[tuple[Claim, Finished]]) -> None:
        """Ask for the usage of the tenants of attempts with effects."""
        tenant_ids = {
            claim.tenant_id for claim, finished in batch if finished.outcome is Outcome.OK and effects_of(finished)
        }
        if tenant_ids:
            known = usage.ask_usages_of_day(self._context, self._connection, tenant_ids, self.day)
            stored = storage_usage.ask_kept_bytes(self._connection, tenant_ids)
            self._answers = known, stored

    def _usage_now(self, tenant_id: str) -> DayUsage | None:
        if self._answers is not None:
            (known, stored), self._answers = self._answers, None
            self._known, self._stored = known(), stored()
        return self._known.get(tenant_id)

    def check_budgets(self, claim: Claim, finished: Finished) -> None:
        """Check the day budgets of an attempt before its effects are applied.

        Raises:
            BudgetExceeded: a budget of the day would be exceeded.
        """
        tenant = claim.tenant_id
        usage_now = self._usage_now(tenant)
        if usage_now is None:
            return
        for name, asked in effects_of(finished).items():
            limit = usage_now.allowed.of_day(name)
            if limit is not None:
                used = usage_now.used[name] + self._ended[tenant, name] + self._reserved(tenant).get(name, 0)
                if used + asked > limit:
                    raise BudgetExceeded(Overdrawn(name, "day", limit, used, asked), _effects(finished))
        maximum = self._stored.get(tenant, 0) + finished.spent.get("rows_written", 0) * MAX_ROW_BYTES
        self._near_limit = maximum > usage_now.allowed.storage_bytes
        self._stored[tenant] = self._kept_bytes(tenant) if self._near_limit else maximum

    def check_storage(self, claim: Claim, finished: Finished) -> None:
        """Check the stored bytes of the tenant after the effects were applied; deletions are always allowed.

        Raises:
            BudgetExceeded: of ``storage_bytes``.
        """
        tenant = claim.tenant_id
        usage_now = self._known.get(tenant)
        if usage_now is None or not self._near_limit:
            return
        limit, before, now = usage_now.allowed.storage_bytes, self._stored[tenant], self._kept_bytes(tenant)
        if now > max(limit, before):
            raise BudgetExceeded(Overdrawn(STORAGE, "tenant", limit, before, now - before), _effects(finished))
        self._stored[tenant] = now

    def add(self, claim: Claim, finished: Finished) -> None:
        """Count the effects of an attempt for the checks of the next one in the batch."""
        for name, amount in effects_of(finished).items():
            self._ended[claim.tenant_id, name] += amount

    def forget_reservations(self, claim: Claim) -> None:
        """Discard the cached reservations of this tenant after one of its attempts was sealed."""
        self._held.pop(claim.tenant_id, None)

    def _reserved(self, tenant_id: str) -> dict[str, int]:
        if tenant_id not in self._held:
            self._held[tenant_id] = budget_reservations.reserved(self._connection, tenant_id, self.day)
        return self._held[tenant_id]

    def _kept_bytes(self, tenant_id: str) -> int:
        return storage_usage.kept_bytes(self._connection, [tenant_id]).get(tenant_id, 0)


def effects_of(finished: Finished) -> dict[str, int]:
    """Return the amounts that the effects of an attempt use, by budget."""
    if not finished.spent and not finished.effects:
        return {}
    spent = finished.spent or budget_table.of_effects(finished.effects)
    return {name: spent[name] for name in _EFFECTS if spent.get(name)}


def _effects(finished: Finished) -> Sequence[Effect]:
    return finished.journal.effects if isinstance(finished.journal, Journal) else ()
