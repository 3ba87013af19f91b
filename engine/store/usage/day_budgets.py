"""Exhausted budgets of a day: the tenants affected, and the end of their waiting actions."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, select, update

from lodger.engine.policy.budget_table import Used, exhausted
from lodger.engine.store.context import StoreContext
from lodger.engine.store.queue.candidates import running
from lodger.engine.store.schema.scheduling import actions, is_startable
from lodger.engine.store.usage.usage import DAY_US, usages_of_day

#: Maximum number of waiting actions that one claim ends for a tenant.
MAX_ROWS = 1000


def exhausted_tenants(
    context: StoreContext, connection: Connection, limits: Mapping[str, str], now_us: int
) -> dict[str, str]:
    """Return the reason for each of these tenants that may start nothing more on this UTC day.

    Args:
        limits: each tenant's limits as they are stored.
    """
    cache = context.content_cache
    wanted = [tenant for tenant, text in limits.items() if cache.allowance(text).limits_starts]
    return _exhausted(context, connection, wanted, now_us, {}) if wanted else {}


def spent_or_reserved(
    context: StoreContext, connection: Connection, tenant_ids: Iterable[str], now_us: int
) -> dict[str, str]:
    """Return the exhausted budget of each of these tenants that may start nothing now; running attempts may use up the rest."""
    wanted = sorted(set(tenant_ids))
    return _exhausted(context, connection, wanted, now_us, running(connection, wanted))


def _exhausted(
    context: StoreContext, connection: Connection, tenant_ids: Iterable[str], now_us: int, busy: Mapping[str, int]
) -> dict[str, str]:
    """Return the exhausted budget of each of these tenants on a day; ``busy`` are numbers of runs that count already."""
    found = {}
    for tenant, day in usages_of_day(context, connection, tenant_ids, now_us // DAY_US).items():
        reason = exhausted(day.allowed, Used(day.used["runs"] + busy.get(tenant, 0), day.used["cpu_us"]))
        if reason is not None:
            found[tenant] = reason
    return found


#: Runs that the machine took away, or an operator: they hold their place in the day.
has_begun = and_(actions.c.state == "ready", actions.c.step == 0, actions.c.attempt > 0)
_waiting = (
    select(actions.c.id)
    .where(actions.c.tenant_id == bindparam("tenant"), is_startable, actions.c.due_at <= bindparam("until"), ~has_begun)
    .limit(MAX_ROWS)
)
_ended: dict[str, Any] = {
    # Started actions (a retry or a later step) have failed; others are skipped.
    "state": case(((actions.c.state == "ready") & (actions.c.step == 0), "skipped"), else_="failed"),
    "reason": bindparam("why"),
    "held": 0,
    "finished_us": bindparam("now"),
}
_end = (
    update(actions)
    .where(actions.c.tenant_id == bindparam("tenant"), actions.c.id.in_(_waiting))
    .values(_ended)
    .returning(actions.c.schedule_id)
)
_end_behind = (
    update(actions)
    .where(actions.c.schedule_id == bindparam("schedule"), actions.c.state == "ready", actions.c.held == 1)
    .values(_ended)
)


def end_waiting(connection: Connection, tenant_id: str, reason: str, now_us: int, until_us: int) -> bool:
    """End actions of this tenant that are due until then, and those held behind them; the caller refreshes the ready queue.

    Return whether only runs that had begun are left.
    """
    details = {"why": reason, "now": now_us}
    rows = connection.execute(_end, details | {"tenant": tenant_id, "until": until_us}).all()
    behind = [details | {"schedule": schedule} for schedule in sorted({row[0] for row in rows if row[0] is not None})]
    if behind:
        connection.execute(_end_behind, behind)
    return len(rows) < MAX_ROWS
