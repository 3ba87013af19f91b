"""Usage of tenants by UTC day, charged in the transaction that ends an attempt, exact on any number of nodes.

Attempts that failed through a fault of the engine are not charged.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from operator import attrgetter

from sqlalchemy import Connection, bindparam, select

from lodger.engine.core.errors import InputError
from lodger.engine.core.events import Event, EventBus
from lodger.engine.policy.budget_table import BY_NAME, NAMES, Allowance, crossed, limits_of_day
from lodger.engine.store.bulk import add_many
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import prepared
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import limits_in_effect, tenants, usage_days

DAY_US = 86_400_000_000
#: Counted columns.
COLUMNS = ("runs", "cpu_us", *NAMES)
_amounts = attrgetter(*COLUMNS)
_NOTHING = dict.fromkeys(COLUMNS, 0)
_FIRST = date(1970, 1, 1)
#: Tenant and day, in days since 1970.
Key = tuple[str, int]
Charges = dict[Key, Counter[str]]
_c = usage_days.c
_log = logging.getLogger("lodger.ledger")


@dataclass(frozen=True, slots=True)
class Warned:
    """A tenant has reached the warning level of a budget of a day."""

    tenant_id: str
    budget: str
    limit: int
    used: int

    def report(self, events: EventBus, now_us: int) -> None:
        """Write a line to the log, and publish an event for people."""
        _log.warning(
            "tenant %s has used %d of %d of today's budget %s", self.tenant_id, self.used, self.limit, self.budget,
            extra={"tenant_id": self.tenant_id},
        )  # fmt: skip
        details = {"budget": self.budget, "per": "day", "limit": self.limit, "used": self.used}
        events.publish(Event("budget", now_us, self.tenant_id, details=details))


@dataclass(frozen=True, slots=True)
class UsageDay:
    """Usage of a tenant on one UTC day; ``counts`` by the names of the table of budgets."""

    day: date
    runs: int
    cpu_s: float
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """A budget of a tenant: ``per`` is ``day`` or ``tenant``; ``limit`` is None for an unlimited budget."""

    budget: str
    per: str
    limit: int | None
    used: int | float
    help: str


@dataclass(frozen=True, slots=True)
class Account:
    """Usage of a tenant by UTC day, and the present use of its budgets."""

    days: tuple[UsageDay, ...]
    budgets: tuple[BudgetRow, ...]


@dataclass(frozen=True, slots=True)
class DayUsage:
    """Allowance and usage of a tenant on one day."""

    allowed: Allowance
    used: dict[str, int]

    def rows(self) -> list[BudgetRow]:
        """Return every budget of the day, runs first."""
        allowed, used = self.allowed, self.used
        return [
            BudgetRow("runs", "day", allowed.runs_per_day, used["runs"], "attempts"),
            BudgetRow("cpu_s", "day", allowed.cpu_s_per_day, used["cpu_us"] / 1_000_000, "CPU time"),
            *(BudgetRow(name, "day", allowed.of_day(name), used[name], BY_NAME[name].help) for name in NAMES),
        ]

    @property
    def limited(self) -> dict[str, tuple[int, int]]:
        """Limit and use of each budget with a limit a day."""
        limits = limits_of_day(self.allowed)
        return {name: (limit, self.used[name]) for name, limit, _scale in limits if name in BY_NAME}

    @property
    def share(self) -> float | None:
        """The used part of the fullest budget; None if none is limited."""
        parts = (
            self.used[name] / scale / limit if limit else 1.0 for name, limit, scale in limits_of_day(self.allowed)
        )
        return max(parts, default=None)


#: Allowances and usage of a day: rows for :func:`day_usage`.
today = select(tenants.c.id, limits_in_effect, *(_c[name] for name in COLUMNS)).join_from(
    tenants, usage_days, (_c.tenant_id == tenants.c.id) & (_c.day == bindparam("day")), isouter=True
)
_usages = Prepared(lambda driver: today.where(driver.among(tenants.c.id, "tenants")))


def usages_of_day(
    context: StoreContext, connection: Connection, tenant_ids: Iterable[str], day: int
) -> dict[str, DayUsage]:
    """Return the allowance and usage of these tenants on a day, in days since 1970."""
    return ask_usages_of_day(context, connection, tenant_ids, day)()


def ask_usages_of_day(
    context: StoreContext, connection: Connection, tenant_ids: Iterable[str], day: int
) -> Callable[[], dict[str, DayUsage]]:
    """Ask for the day's usage of tenants; the returned function returns it."""
    values = {"day": day, "tenants": sorted(set(tenant_ids))}
    return _usages.answer(connection, values, lambda rows: {row.id: day_usage(context, row) for row in rows})


def day_usage(context: StoreContext, row: AnyRow) -> DayUsage:
    """Return a tenant's allowance and usage from a row with its limits and the usage columns, which may be None."""
    used = {name: amount or 0 for name, amount in zip(COLUMNS, _amounts(row), strict=True)}
    return DayUsage(context.content_cache.allowance(row.limits), used)


def charge(
    context: StoreContext, connection: Connection, used: Charges, limits: Mapping[str, str] | None = None
) -> list[Warned]:
    """Add to the usage of tenants; return those that reached the warning level of a budget, each once a day.

    The caller holds the tenants' locks.

    Args:
        limits: the tenants' limits as they are stored, where the caller has read them.
    """
    rows = [
        {"tenant_id": tenant, "day": day, **_NOTHING, **counts}
        for (tenant, day), counts in sorted(used.items())
        if any(counts.values())
    ]
    if not rows:
        return []
    add_many(connection, usage_days, ("tenant_id", "day"), rows)
    if limits is None:
        known = select(tenants.c.id, limits_in_effect).where(tenants.c.id.in_({tenant for tenant, _day in used}))
        limits = {row.id: row.limits for row in connection.execute(known)}
    allowed = {tenant: context.content_cache.allowance(text) for tenant, text in limits.items()}
    return _warned(connection, used, allowed)


def _warned(connection: Connection, used: Charges, allowed: Mapping[str, Allowance]) -> list[Warned]:
    """Return the warnings, with a query only if one of the charged budgets is limited."""
    limits = {tenant: limits_of_day(allowance) for tenant, allowance in allowed.items()}
    watched = {
        (tenant, day): near
        for (tenant, day), counts in used.items()
        if (near := [each for each in limits.get(tenant, ()) if counts[each[0]] > 0])
    }
    if not watched:
        return []
    mine = (_c.tenant_id.in_({tenant for tenant, _day in watched}), _c.day.in_({day for _tenant, day in watched}))
    found = []
    for row in connection.execute(select(usage_days).where(*mine).order_by(_c.tenant_id, _c.day)):
        for name, limit, scale in watched.get((row.tenant_id, row.day), ()):
            after = getattr(row, name)
            if crossed(limit * scale, after - used[row.tenant_id, row.day][name], after):
                found.append(Warned(row.tenant_id, "cpu_s" if name == "cpu_us" else name, limit, after // scale))
    return found


def of_tenant(connection: Connection, tenant_id: str, since: date | None, until: date | None) -> list[UsageDay]:
    """Return the usage of a tenant between two days, both included, oldest first; days without use are omitted.

    Raises:
        InputError: usage_range.
    """
    if since is not None and until is not None and since > until:
        raise InputError("usage_range", since=since, until=until)
    found = select(usage_days).where(_c.tenant_id == tenant_id)
    if since is not None:
        found = found.where(_c.day >= (since - _FIRST).days)
    if until is not None:
        found = found.where(_c.day <= (until - _FIRST).days)
    return [
        UsageDay(
            _FIRST + timedelta(days=row.day),
            row.runs,
            row.cpu_us / 1_000_000,
            {name: getattr(row, name) for name in NAMES},
        )
        for row in connection.execute(found.order_by(_c.day))
    ]


def chargeable(spent: Mapping[str, int], *, applied: bool) -> dict[str, int]:
    """Return the chargeable amounts of an attempt: effects count only if they were applied."""
    return {name: amount for name, amount in spent.items() if amount and (applied or not BY_NAME[name].effect)}


def used_up(context: StoreContext, connection: Connection, tenant_id: str) -> str:
    """Return why the tenant has no CPU time left today, "" if it has."""
    prepared.last(connection)
    today = usages_of_day(context, connection, [tenant_id], _day(context)).get(tenant_id)
    limit = None if today is None else today.allowed.cpu_s_per_day
    if today is None or limit is None or today.used["cpu_us"] < limit * 1_000_000:
        return ""
    return f"tenant {tenant_id!r} has used its {limit} s of CPU time of this UTC day"


def charge_trial(context: StoreContext, connection: Connection, tenant_id: str, cpu_ms: float) -> None:
    """Add the CPU time of a trial or a check to the tenant's usage of the day; ignored if the tenant was deleted meanwhile."""
    if cpu_ms <= 0:
        return
    ready_queue.lock(connection, [tenant_id])
    if usages_of_day(context, connection, [tenant_id], _day(context)):
        add_trial(context, connection, tenant_id, cpu_ms)


def add_trial(context: StoreContext, connection: Connection, tenant_id: str, cpu_ms: float) -> None:
    """Add the CPU time of a trial or a check to the usage of the day of a tenant that is locked, without a warning."""
    if cpu_ms > 0:
        charges = {(tenant_id, _day(context)): Counter({"cpu_us": int(cpu_ms * 1000)})}
        charge(context, connection, charges, limits={})


def _day(context: StoreContext) -> int:
    """Return today as days since 1970."""
    return context.clock.now_us() // DAY_US
