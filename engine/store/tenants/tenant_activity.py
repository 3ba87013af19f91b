"""Tenants with their activity: runs and budgets of the present UTC day, failures of the last 24 hours, the latest action."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, literal, select

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import PLATFORM, id_time_us
from lodger.engine.store import list_filter, pages
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.drivers.expressions import indexed_by
from lodger.engine.store.pages import MAX_ROWS
from lodger.engine.store.records import Json, Page
from lodger.engine.store.rows import record
from lodger.engine.store.schema.scheduling import FAILED, actions, is_one_of, tenants, usage_days
from lodger.engine.store.signing_keys import decode_cursor
from lodger.engine.store.tenants.tenants import language as of_tenants
from lodger.engine.store.usage.usage import DAY_US, DayUsage, day_usage, today, usages_of_day

_NEVER = "00000000-0000-0000-0000-000000000000"
#: No column has it: :func:`_by_budget` sorts.
_BY_BUDGET: ColumnElement[Any] = literal("budget")
#: In the order by budgets, of a tenant without a limited one.
_UNLIMITED = -1.0


@dataclass(frozen=True, slots=True)
class TenantActivity:
    """A tenant with its activity.

    Attributes:
        runs: attempts of the present UTC day.
        failures: actions that failed or expired in the last 24 hours.
        budget: the used part of the fullest budget of the day; None if none is limited.
        latest: id of the latest action.
        latest_at: when that was created.
        plan: name of its plan, None without one.
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
    plan: str | None


def find(now_us: int, text: str | None) -> tuple[list_filter.Filter, Any]:
    """Return the filter of a text, and the query of tenants with their numbers to which it applies."""
    day = usage_days.c
    used = select(day.tenant_id, day.runs).where(day.day == now_us // DAY_US).subquery("used").c
    failed = (
        select(actions.c.tenant_id, func.count().label("failures"))
        .where(is_one_of(actions.c.state, FAILED), actions.c.finished_us >= now_us - DAY_US)
        .group_by(actions.c.tenant_id)
    )
    # Without statistics SQLite would read all actions in the order of their tenants.
    failing = indexed_by(failed, actions, "ix_lodger_actions_failed").subquery("failing")
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
        "runs": runs,
        "failures": failures,
        "latest": latest,
        "plan": func.coalesce(tenants.c.plan, ""),
        "budget": _BY_BUDGET,
    }
    return list_filter.read(replace(plain, sorts={**plain.sorts, **sorts}), text, now_us), statement


def list_page(
    context: StoreContext,
    connection: Connection,
    now_us: int,
    text: str | None,
    limit: int,
    cursor: str | None,
) -> Page[TenantActivity]:
    """Return a page of the tenants that match a filter."""
    wanted, statement = find(now_us, text)
    of = f"tenant activity:{wanted.text}"

    def make_activities(rows: list[Any]) -> list[TenantActivity]:
        """Return the activities of rows, with the usage of the present day."""
        usages = usages_of_day(context, connection, [row.id for row in rows], now_us // DAY_US)
        return [_made(row, usages[row.id]) for row in rows]

    if wanted.keys[0] is _BY_BUDGET:
        place = decode_cursor(connection, of, cursor)
        places, more = _by_budget(context, connection, now_us, wanted, place, limit)
        ids = [each[1] for each in places]
        found = {
            each.id: each for each in make_activities(list(connection.execute(statement.where(tenants.c.id.in_(ids)))))
        }
        return pages.page(connection, of, [found[each] for each in ids], places, more=more, falls=wanted.falls)
    return pages.read(connection, of, wanted, statement, make_activities, limit, cursor)


def _by_budget(
    context: StoreContext,
    connection: Connection,
    now_us: int,
    wanted: list_filter.Filter,
    place: Json,
    limit: int,
) -> tuple[list[Any], bool]:
    """Return the places of a page of tenants, use of the fullest budget and id, and whether more follow.

    Limits are those of the tenant, of its plan and of the settings, so that no column has the shares: all matching tenants are sorted here.
    """
    if not 1 <= limit <= MAX_ROWS:
        raise InputError("limit_invalid", limit=limit, maximum=MAX_ROWS)
    driver_of(connection).allow_scans(connection)
    matching = today.where(tenants.c.state != "deleted", tenants.c.id != PLATFORM, *wanted.conditions)
    rows = connection.execute(matching, {"day": now_us // DAY_US})
    shares = [(_UNLIMITED if (share := day_usage(context, row).share) is None else share, row.id) for row in rows]
    places = sorted(shares, reverse=wanted.falls)
    if place is not None:
        here = (float(place[0]), str(place[1]))
        places = [each for each in places if (each < here if wanted.falls else each > here)]
    return [list(each) for each in places[:limit]], len(places) > limit


def _made(row: Any, usage: DayUsage) -> TenantActivity:
    """Return a tenant's activity from its row and the usage of its day."""
    latest = None if str(row.latest) == _NEVER else str(row.latest)
    latest_at = None if latest is None else from_us(id_time_us(latest))
    labels = tuple(row.labels.split())
    return record(TenantActivity, row, labels=labels, budget=usage.share, latest=latest, latest_at=latest_at)
