"""Checks of an attempt's effects against day budgets and storage, in the transaction that commits them.

Other attempts may have ended while this one ran, so that the usage it started with is outdated. The caller holds the
tenant's lock, so that usage does not change here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection

from lodger.engine.core.execution import Claim
from lodger.engine.effects.commit_errors import NotApplied
from lodger.engine.effects.effect import CancelRun, Effect, Emit, KvAdd, KvSet, Mail, RunLater
from lodger.engine.effects.finished import Finished
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

    def __init__(
        self, context: StoreContext, connection: Connection, batch: Iterable[tuple[Claim, Finished]], now_us: int
    ) -> None:
        """Ask for the usage of the tenants of attempts with effects."""
        self._connection = connection
        self._day = now_us // usage.DAY_US
        self._known: dict[str, DayUsage] = {}
        self._stored: dict[str, int] = {}
        self._ended: Counter[tuple[str, str]] = Counter()
        self._held: dict[str, dict[str, int]] = {}
        self._answers: tuple[Callable[[], dict[str, DayUsage]], Callable[[], dict[str, int]]] | None = None
        tenant_ids = {
            claim.tenant_id for claim, finished in batch if finished.outcome is Outcome.OK and effects_of(finished)
        }
        if tenant_ids:
            known = usage.ask_usages_of_day(context, connection, tenant_ids, self._day)
            self._answers = known, storage_usage.ask_kept_bytes(connection, tenant_ids)

    @contextmanager
    def admit(self, claim: Claim, finished: Finished) -> Iterator[None]:
        """Check an attempt's day budgets before the body applies its effects, and the tenant's stored bytes after it.

        Effects that were applied, or sealed and reserved, count for the next attempt of the batch. Deletions are always allowed.

        Raises:
            BudgetExceeded: of a budget of the day or of ``storage_bytes``.
        """
        if self._answers is not None:
            (known, stored), self._answers = self._answers, None
            self._known, self._stored = known(), stored()
        tenant, amounts = claim.tenant_id, effects_of(finished)
        known_usage = self._known.get(tenant)
        is_near_limit = known_usage is not None and self._check_day(tenant, finished, amounts, known_usage)
        yield
        if known_usage is not None and is_near_limit:
            limit, before, now = known_usage.allowed.storage_bytes, self._stored[tenant], self._kept_bytes(tenant)
            if now > max(limit, before):
                raise BudgetExceeded(Overdrawn(STORAGE, "tenant", limit, before, now - before), _effects(finished))
            self._stored[tenant] = now
        if finished.journal is None or finished.journal.home is None:
            self._ended.update({(tenant, name): amount for name, amount in amounts.items()})
        else:
            self._held.pop(tenant, None)

    def _check_day(self, tenant: str, finished: Finished, amounts: dict[str, int], now: DayUsage) -> bool:
        """Check the day's budgets against an attempt's amounts; return whether its effects might exceed the tenant's storage."""
        for name, asked in amounts.items():
            limit = now.allowed.of_day(name)
            if limit is not None:
                used = now.used[name] + self._ended[tenant, name] + self._reserved(tenant).get(name, 0)
                if used + asked > limit:
                    raise BudgetExceeded(Overdrawn(name, "day", limit, used, asked), _effects(finished))
        maximum = self._stored.get(tenant, 0) + finished.spent.get("rows_written", 0) * MAX_ROW_BYTES
        is_near_limit = maximum > now.allowed.storage_bytes
        self._stored[tenant] = self._kept_bytes(tenant) if is_near_limit else maximum
        return is_near_limit

    def _reserved(self, tenant_id: str) -> dict[str, int]:
        """Return the amounts of the day that sealed attempts of a tenant have reserved."""
        if tenant_id not in self._held:
            self._held[tenant_id] = budget_reservations.reserved(self._connection, tenant_id, self._day)
        return self._held[tenant_id]

    def _kept_bytes(self, tenant_id: str) -> int:
        """Return the bytes that a tenant stores now."""
        return storage_usage.ask_kept_bytes(self._connection, [tenant_id])().get(tenant_id, 0)


def effects_of(finished: Finished) -> dict[str, int]:
    """Return the amounts that the effects of an attempt use, by budget."""
    if not finished.spent and not finished.effects:
        return {}
    spent = finished.spent or budget_table.of_effects(finished.effects)
    return {name: spent[name] for name in _EFFECTS if spent.get(name)}


def _effects(finished: Finished) -> Sequence[Effect]:
    """Return the effects of an attempt, in call order."""
    return () if finished.journal is None else finished.journal.effects
