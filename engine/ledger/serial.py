"""Actions of one schedule start one after the other: who is held, who goes next."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, case, exists, func, select, text, update

from lodger.engine.ledger.schema.scheduling import actions, is_open
from lodger.engine.policy.plan import Standing

_ahead = actions.alias("ahead")
_next = (
    select(actions.c.id)
    .where(
        actions.c.schedule_id == bindparam("schedule"),
        actions.c.state == "ready",
        actions.c.held == 1,
        ~exists().where(
            _ahead.c.schedule_id == bindparam("schedule"),
            # Literal words: a list of bound values cannot be part of a statement for many rows.
            text("ahead.state IN ('ready', 'running', 'sealed', 'waiting_retry')"),
            _ahead.c.held == 0,
        ),
    )
    # A backfill goes behind every slot that came due meanwhile.
    .order_by(case((actions.c.origin == "backfill", 1), else_=0), actions.c.due_at, actions.c.id)
    .limit(1)
)
_release = (
    update(actions)
    .where(actions.c.tenant_id == bindparam("tenant"), actions.c.id == _next.scalar_subquery())
    .values(held=0)
)


def release(connection: Connection, schedules: Iterable[tuple[str, str]]) -> None:
    """Let the next held action of each schedule (tenant, id) start, when nothing is ahead of it any more.

    Called in every transaction that ends an action: a held action without an unfinished one ahead is never stored.
    """
    wanted = set(schedules)
    if wanted and connection.dialect.name != "sqlite":
        # One question for all instead of one update for each: mostly nothing is held.
        some = connection.scalars(_with_held, {"schedules": sorted(schedule for _tenant, schedule in wanted)})
        holding = set(some)
        wanted = {each for each in wanted if each[1] in holding}
    rows = [{"tenant": tenant, "schedule": schedule} for tenant, schedule in sorted(wanted)]
    if rows:
        connection.execute(_release, rows)


_with_held = (
    select(actions.c.schedule_id)
    .where(
        actions.c.schedule_id.in_(bindparam("schedules", expanding=True)),
        actions.c.state == "ready",
        actions.c.held == 1,
    )
    .distinct()
)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What is unfinished of one schedule.

    Attributes:
        standing: what the overlap policy sees; what a backfill made is not in it, because it may not cost a slot its run.
        backfilling: actions of a backfill that run or may start at once.
    """

    standing: Standing
    retrying: int
    backfilling: int = 0


def unfinished(connection: Connection, schedule_ids: list[str]) -> dict[str, Unfinished]:
    """Count the unfinished actions of these schedules; a schedule without any is absent."""
    if not schedule_ids:
        return {}
    key = (actions.c.schedule_id, actions.c.state, actions.c.held, actions.c.origin)
    rows = connection.execute(
        select(*key, func.count()).where(actions.c.schedule_id.in_(schedule_ids), is_open).group_by(*key)
    )
    found: dict[str, Unfinished] = {}
    for schedule, state, held, origin, count in rows:
        before = found.get(schedule, _NOTHING)
        standing, retrying, backfilling = before.standing, before.retrying, before.backfilling
        if state == "waiting_retry":
            retrying += count
        elif origin == "backfill":
            backfilling += 0 if held else count
        elif held:
            standing = Standing(standing.busy, standing.waiting + count)
        else:
            standing = Standing(standing.busy + count, standing.waiting)
        found[schedule] = Unfinished(standing, retrying, backfilling)
    return found


_NOTHING = Unfinished(Standing(), 0)
