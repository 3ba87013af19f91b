"""Order of the actions of one schedule: which are held, which starts next, and the number of consecutive failures."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, any_, case, exists, func, literal_column, select, update

from lodger.engine.policy.plan import UnfinishedCounts
from lodger.engine.store.bulk import ManyRows
from lodger.engine.store.drivers import Driver
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.schema.scheduling import OPEN, actions, is_one_of, is_open, schedules

#: Tenant, schedule and node key, whose actions start in one order. The node key is '' unless the schedule is placed on every node.
OrderKey = tuple[str, str, str]

_ahead = actions.alias("ahead")


def _releasing(given: Any, _driver: Driver) -> Any:
    """Return the statement that releases the first held action of each schedule and node key, if none before it is unfinished."""
    # Literals, because SQLite plans a statement anew for each value that it compares with an index's condition.
    ahead = exists().where(
        _ahead.c.schedule_id == given.c.schedule,
        _ahead.c.node_key == given.c.key,
        is_one_of(_ahead.c.state, OPEN),
        _ahead.c.held == literal_column("0"),
    )
    first = (
        select(actions.c.id)
        .where(
            actions.c.schedule_id == given.c.schedule,
            actions.c.node_key == given.c.key,
            actions.c.state == literal_column("'ready'"),
            actions.c.held == literal_column("1"),
            ~ahead.correlate_except(_ahead),
        )
        # Backfills start after slots that came due meanwhile.
        .order_by(case((actions.c.origin == literal_column("'backfill'"), 1), else_=0), actions.c.due_at, actions.c.id)
        .limit(1)
        .correlate_except(actions)
    )
    found = select(given.c.tenant, first.scalar_subquery().label("id")).subquery("found")
    return update(actions).where(actions.c.tenant_id == found.c.tenant, actions.c.id == found.c.id).values(held=0)


_release = ManyRows(
    {"tenant": actions.c.tenant_id, "schedule": actions.c.schedule_id, "key": actions.c.node_key}, _releasing
)


def release(connection: Connection, keys: Iterable[OrderKey]) -> None:
    """Let the next held action of each of these schedules (tenant, schedule, node key) start, if nothing before it is unfinished.

    Called in every transaction that ends an action: a held action without an unfinished one before it is never stored.
    """
    _release.rows(connection, [{"tenant": each[0], "schedule": each[1], "key": each[2]} for each in sorted(set(keys))])


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Numbers of unfinished actions of one schedule.

    Attributes:
        counts: the counts for the overlap policy, without backfills, which may not prevent the run of a slot.
        retrying: actions that wait for a retry after a failure of their own; ``backfill_retrying``: those of a backfill.
        backfilling: actions of a backfill that run or may start at once.
    """

    counts: UnfinishedCounts
    retrying: int = 0
    backfilling: int = 0
    backfill_retrying: int = 0

    @property
    def any_retrying(self) -> int:
        """Number of all actions that wait for a retry."""
        return self.retrying + self.backfill_retrying


def unfinished(connection: Connection, schedule_ids: list[str]) -> dict[tuple[str, str], Unfinished]:
    """Count the unfinished actions of these schedules, by schedule and node key; those without any are absent."""
    if not schedule_ids:
        return {}
    return _counted(_unfinished.rows(connection, {"schedules": schedule_ids}))


def ask_unfinished(connection: Connection) -> Callable[[], dict[tuple[str, str], Unfinished]]:
    """Ask for what :func:`unfinished` returns, of the schedules that were handed on as ``clocks``."""
    return _unfinished_handed.answer(connection, {}, _counted)


def _counted(rows: Iterable[Any]) -> dict[tuple[str, str], Unfinished]:
    """Return the numbers of unfinished actions by schedule and node key, from rows of a count."""
    found: dict[tuple[str, str], Counter[tuple[bool, str]]] = {}
    for schedule, node_key, state, held, origin, count in rows:
        stands = "retrying" if state == "waiting_retry" else "waiting" if held else "busy"
        found.setdefault((schedule, node_key), Counter())[origin == "backfill", stands] += count
    return {
        key: Unfinished(
            UnfinishedCounts(of[False, "busy"], of[False, "waiting"]),
            retrying=of[False, "retrying"],
            backfilling=of[True, "busy"],
            backfill_retrying=of[True, "retrying"],
        )
        for key, of in found.items()
    }


_key = (actions.c.schedule_id, actions.c.node_key, actions.c.state, actions.c.held, actions.c.origin)


def _counting_open(mine: Any) -> Any:
    """Return the query that counts the unfinished actions that satisfy a condition."""
    return select(*_key, func.count()).where(mine, is_open).group_by(*_key)


_unfinished = Prepared(lambda driver: _counting_open(driver.among(actions.c.schedule_id, "schedules")))
_unfinished_handed = Prepared(
    lambda driver: _counting_open(actions.c.schedule_id == any_(driver.handed("clocks", actions.c.schedule_id.type)))
)


def has_unfinished(connection: Connection, schedule_id: str, node_key: str = "") -> bool:
    """Whether a schedule has unfinished actions, of one node for a schedule placed on every node."""
    return (schedule_id, node_key) in unfinished(connection, [schedule_id])


NONE_UNFINISHED = Unfinished(UnfinishedCounts())


def _counting_failures(given: Any, _driver: Driver) -> Any:
    """Return the statement that sets a schedule's number of failures in a row to ``kept`` (0 or 1) times the old one, plus ``more``."""
    mine = (schedules.c.tenant_id == given.c.k_tenant, schedules.c.id == given.c.k_schedule)
    # A success after a success writes nothing.
    changes = (schedules.c.failures > 0) | (given.c.more > 0)
    failures = schedules.c.failures * given.c.kept + given.c.more
    return update(schedules).where(*mine, changes).values(failures=failures)


_count_failures = ManyRows({
    "k_tenant": schedules.c.tenant_id, "k_schedule": schedules.c.id, "kept": schedules.c.failures, "more": schedules.c.failures,
}, _counting_failures)  # fmt: skip


def count_failures(connection: Connection, ends: Iterable[tuple[str, str, bool]]) -> list[tuple[str, str]]:
    """Update the counts of consecutive failures; return the schedules that have just failed.

    Called after actions and before ready-queue rows are written: the order is the same everywhere, so that a tick and a
    commit never deadlock.

    Args:
        ends: tenant, schedule and whether the action failed, in order.
    """
    rows: dict[tuple[str, str], dict[str, object]] = {}
    more: dict[tuple[str, str], int] = {}
    for tenant, schedule, failed in ends:
        key = (tenant, schedule)
        row = rows.setdefault(key, {"k_tenant": tenant, "k_schedule": schedule, "kept": 1})
        more[key] = more.get(key, 0) + 1 if failed else 0
        row["kept"] = row["kept"] if failed else 0
    _count_failures.rows(connection, [rows[key] | {"more": more[key]} for key in sorted(rows)])
    return sorted(key for key, number in more.items() if number)
