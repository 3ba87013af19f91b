"""Tenants with their activity: runs and budgets of the present UTC day, failures of the last 24 hours, the latest action."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, literal, select

from lodger.engine.core.clock import from_us
from lodger.engine.core.ids import PLATFORM, id_time_us
from lodger.engine.store import list_filter
from lodger.engine.store.context import StoreContext
from lodger.engine.store.pages import LimitedList, read
from lodger.engine.store.schema.scheduling import FAILED, actions, is_one_of, tenants, usage_days
from lodger.engine.store.tenants.tenants import language as of_tenants
from lodger.engine.store.usage.usage import DAY_US, usages_of_day

_NEVER = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class TenantActivity:
    """A tenant with its activity.

    Attributes:
        runs: attempts of the present UTC day.
        failures: actions that failed or expired in the last 24 hours.
        budget: the used part of the fullest budget of the day; None if none is limited.
        latest: id of the latest action.
        latest_at: when that was created.
    """

    id: str
    name: str
    state: str
    created_at: datetime
    labels: tuple[str, ...]
    runs: int
    failures: int
    budget: float | None
    latest: str | None
    latest_at: datetime | None


def find(now_us: int, text: str | None) -> tuple[list_filter.Filter, Any]:
    """Return the filter that a text says, and the statement of the tenants beside their numbers that it is for.

    Raises:
        InputError: filter_invalid.
    """
    day = usage_days.c
    used = select(day.tenant_id, day.runs).where(day.day == now_us // DAY_US).subquery("used").c
    failing = (
        select(actions.c.tenant_id, func.count().label("failures"))
        .where(is_one_of(actions.c.state, FAILED), actions.c.finished_us >= now_us - DAY_US)
        .group_by(actions.c.tenant_id)
        .subquery("failing")
    )
    newest = (
        select(actions.c.id)
        .where(actions.c.tenant_id == tenants.c.id)
        .order_by(actions.c.id.desc())
        .limit(1)
        .correlate(tenants)
    )
    runs, failures = func.coalesce(used.runs, 0), func.coalesce(failing.c.failures, 0)
    latest = func.coalesce(newest.scalar_subquery(), literal(_NEVER, actions.c.id.type))
    statement = (
        select(tenants, runs.label("runs"), failures.label("failures"), latest.label("latest"))
        .outerjoin(used.runs.table, used.tenant_id == tenants.c.id)
        .outerjoin(failing, failing.c.tenant_id == tenants.c.id)
        .where(tenants.c.state != "deleted", tenants.c.id != PLATFORM)
    )
    plain = of_tenants()
    sorts = {
        "runs": list_filter.Sort(runs, lambda each: each.runs),
        "failures": list_filter.Sort(failures, lambda each: each.failures),
        "latest": list_filter.Sort(latest, lambda each: each.latest or _NEVER),
    }
    return list_filter.read(replace(plain, sorts={**plain.sorts, **sorts}), text, now_us), statement


def list_page(
    context: StoreContext,
    connection: Connection,
    now_us: int,
    text: str | None,
    place: Sequence[Any] | None,
    limit: int,
) -> LimitedList[TenantActivity]:
    """Return the tenants that match a filter, in its order, beginning after a place."""
    wanted, statement = find(now_us, text)

    def made(rows: list[Any]) -> list[TenantActivity]:
        usages = usages_of_day(context, connection, [row.id for row in rows], now_us // DAY_US)
        return [_made(row, usages[row.id].rows()) for row in rows]

    return read(connection, wanted.apply(statement, place), limit, made)


def _made(row: Any, budgets: Sequence[Any]) -> TenantActivity:
    """Return a tenant's activity from its row and budgets."""
    shares = [each.used / each.limit if each.limit else 1.0 for each in budgets if each.limit is not None]
    latest = None if str(row.latest) == _NEVER else str(row.latest)
    return TenantActivity(
        row.id, row.name, row.state, from_us(row.created_us), tuple(row.labels.split()), row.runs, row.failures,
        max(shares, default=None), latest, None if latest is None else from_us(id_time_us(latest)),
    )  # fmt: skip
