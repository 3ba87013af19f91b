"""What may start: the first so many actions of each line of tenants, and how many of each tenant run already.

On PostgreSQL one question for all lines, on SQLite, where a question costs no round trip, a short one for each.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Connection,
    Select,
    Text,
    any_,
    bindparam,
    cast,
    func,
    literal_column,
    select,
    true,
    union_all,
)

from lodger.engine.ledger.many import EachRow, columns, unnested
from lodger.engine.ledger.records import AnyRow
from lodger.engine.ledger.schema.scheduling import Name, actions, is_running, is_startable
from lodger.engine.policy.conduct import Priority


@dataclass(slots=True)
class Line:
    """A tenant's actions that require the same labels.

    Attributes:
        most: how many of them may start.
    """

    tenant_id: str
    requires: str
    most: int


_COLUMNS = (
    actions.c.tenant_id, actions.c.id, actions.c.schedule_id, actions.c.revision, actions.c.origin, actions.c.slot,
    actions.c.due_at, actions.c.script_id, actions.c.script_version, actions.c.params, actions.c.step, actions.c.handed,
    actions.c.tenant_faults, actions.c.engine_faults, actions.c.conflicts, actions.c.reason, actions.c.requires,
    (actions.c.attempt + literal_column("1")).label("attempt"),
)  # fmt: skip


def _of(rank: int, tenant: Any, labels: Any, most: Any, outer: Any = None) -> Select[Any]:  # noqa: ANN401 - columns or bound values
    # One short look at the index per priority, instead of a sort over all that waits.
    due = (
        select(actions.c.id, actions.c.due_at, literal_column(str(rank)).label("rank"))
        .where(
            actions.c.tenant_id == tenant,
            actions.c.requires == labels,
            is_startable,
            actions.c.priority == literal_column(str(rank)),
            actions.c.due_at <= bindparam("now", type_=BigInteger),
        )
        .order_by(actions.c.due_at, actions.c.id)
        .limit(most)
    )
    if outer is not None:
        due = due.correlate(outer)
    return select(due.subquery())


def _of_one() -> Select[Any]:
    tenant, most = bindparam("tenant", type_=Text), bindparam("most", type_=BigInteger)
    ranked = union_all(*(_of(int(rank), tenant, bindparam("labels", type_=Text), most) for rank in Priority)).subquery()
    return (
        select(*_COLUMNS)
        .join_from(ranked, actions, (actions.c.tenant_id == tenant) & (actions.c.id == ranked.c.id))
        .order_by(ranked.c.rank, ranked.c.due_at, ranked.c.id)
        .limit(most)
    )


def _of_all() -> Select[Any]:
    given = unnested(("tenant", "labels", "most"), (actions.c.tenant_id, actions.c.requires, actions.c.due_at))
    ranked = union_all(
        *(_of(int(rank), given.c.tenant, given.c.labels, given.c.most, given) for rank in Priority)
    ).subquery()
    first = (
        select(ranked)
        .order_by(ranked.c.rank, ranked.c.due_at, ranked.c.id)
        .limit(given.c.most)
        .correlate(given)
        .lateral("first")
    )
    # Behind OFFSET 0 the planner can do nothing but look up each by its key, whatever it knows or not of the table.
    found = (
        select(*_COLUMNS)
        .where(actions.c.tenant_id == given.c.tenant, actions.c.id == first.c.id)
        .correlate(given, first)
        .offset(literal_column("0"))
        .lateral("found")
    )
    return (
        select(found)
        .select_from(given.join(first, true()).join(found, true()))
        .order_by(given.c.tenant, first.c.rank, first.c.due_at, first.c.id)
    )


_one = EachRow(_of_one())
_all = _of_all()


def candidates(connection: Connection, lines: Sequence[Line], now_us: int) -> dict[tuple[str, str], list[AnyRow]]:
    """Give the first ``most`` of each line that are due, in the order in which they shall start."""
    found: dict[tuple[str, str], list[AnyRow]] = {}
    if connection.dialect.name == "sqlite":
        for line in lines:
            values = {"tenant": line.tenant_id, "labels": line.requires, "most": line.most, "now": now_us}
            found[line.tenant_id, line.requires] = list(_one.rows(connection, values))
        return found
    given = [{"tenant": line.tenant_id, "labels": line.requires, "most": line.most} for line in lines]
    for row in connection.execute(_all, columns(("tenant", "labels", "most"), given) | {"now": now_us}).all():
        found.setdefault((row.tenant_id, row.requires), []).append(row)
    return found


_count = EachRow(
    select(func.count()).select_from(actions).where(actions.c.tenant_id == bindparam("tenant", type_=Text), is_running)
)
_tenants = cast(bindparam("tenants", type_=Text), ARRAY(Name))
_counts = (
    select(actions.c.tenant_id, func.count().label("number"))
    .where(actions.c.tenant_id == any_(_tenants), is_running)
    .group_by(actions.c.tenant_id)
)


def running(connection: Connection, tenant_ids: Iterable[str]) -> dict[str, int]:
    """Give how many actions of each of these tenants run; those without are absent."""
    wanted = sorted(set(tenant_ids))
    if connection.dialect.name == "sqlite":
        return {tenant: _count.rows(connection, {"tenant": tenant})[0][0] for tenant in wanted}
    named = columns(("tenants",), [{"tenants": tenant} for tenant in wanted])
    return {row.tenant_id: row.number for row in connection.execute(_counts, named)}
