"""How many actions of a schedule have failed in a row: counted only where a policy asks for it."""

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, update

from lodger.engine.store.schema.scheduling import schedules

_count = (
    update(schedules)
    .where(
        schedules.c.tenant_id == bindparam("k_tenant"),
        schedules.c.id == bindparam("k_schedule"),
        # A success after a success writes nothing.
        (schedules.c.failures > 0) | (bindparam("more") > 0),
    )
    .values(failures=schedules.c.failures * bindparam("kept") + bindparam("more"))
)


def count(connection: Connection, ends: Iterable[tuple[str, str, bool]]) -> list[tuple[str, str]]:
    """Count the ends (tenant, schedule, whether it failed) in their order; give the schedules that have just failed.

    A success begins anew. Called after the actions and before the turns are written: that order is the same everywhere, so
    that a tick and a commit never wait for each other.
    """
    rows: dict[tuple[str, str], dict[str, object]] = {}
    more: dict[tuple[str, str], int] = {}
    for tenant, schedule, failed in ends:
        key = (tenant, schedule)
        row = rows.setdefault(key, {"k_tenant": tenant, "k_schedule": schedule, "kept": 1})
        more[key] = more.get(key, 0) + 1 if failed else 0
        row["kept"] = row["kept"] if failed else 0
    if rows:
        connection.execute(_count, [rows[key] | {"more": more[key]} for key in sorted(rows)])
    return sorted(key for key, number in more.items() if number)
