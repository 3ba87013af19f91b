"""CPU time of work that is not an attempt of an action (trials and checks), in the tenant's UTC day."""

from collections import Counter

from sqlalchemy import Connection

from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import prepared
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.usage import usage


def used_up(context: StoreContext, connection: Connection, tenant_id: str) -> str:
    """Return why the tenant has no CPU time left today, "" if it has."""
    prepared.last(connection)
    today = usage.usages_of_day(context, connection, [tenant_id], _day(context)).get(tenant_id)
    limit = None if today is None else today.allowed.cpu_s_per_day
    if today is None or limit is None or today.used["cpu_us"] < limit * 1_000_000:
        return ""
    return f"tenant {tenant_id!r} has used its {limit} s of CPU time of this UTC day"


def charge(context: StoreContext, connection: Connection, tenant_id: str, cpu_ms: float) -> None:
    """Add CPU time to the tenant's usage of the day; ignored if the tenant was deleted meanwhile."""
    if cpu_ms <= 0:
        return
    ready_queue.lock(connection, [tenant_id])
    if usage.usages_of_day(context, connection, [tenant_id], _day(context)):
        add(context, connection, tenant_id, cpu_ms)


def add(context: StoreContext, connection: Connection, tenant_id: str, cpu_ms: float) -> None:
    """Add CPU time to the usage of the day of a tenant that is locked, without a warning."""
    if cpu_ms > 0:
        charges = {(tenant_id, _day(context)): Counter({"cpu_us": int(cpu_ms * 1000)})}
        usage.charge(context, connection, charges, limits={})


def _day(context: StoreContext) -> int:
    """Return today as days since 1970."""
    return context.clock.now_us() // usage.DAY_US
