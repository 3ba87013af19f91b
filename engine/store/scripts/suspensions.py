"""Suspended scripts: none of their actions starts, and running attempts end at once."""

from sqlalchemy import Connection, select, update

from lodger.engine.core.ids import PLATFORM
from lodger.engine.store.drivers import prepared
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.queue.stops import hand_back
from lodger.engine.store.records import ScriptVersion
from lodger.engine.store.schema.scheduling import actions, scripts
from lodger.engine.store.scripts.scripts import get


def suspend(connection: Connection, tenant_id: str, name: str, now_us: int) -> ScriptVersion:
    """Suspend a script; one of the platform's is suspended for every tenant that has bound it.

    Raises:
        NotFound: script_unknown.
    """
    found = get(connection, tenant_id, name)
    if found.state != "active":
        return found
    tenants = _lock(connection, tenant_id, found.script_id)
    _set(connection, tenant_id, found.script_id, now_us)
    mine = actions.c.tenant_id.in_(tenants) & (actions.c.script_id == found.script_id)
    hand_back(connection, mine, now_us)
    ready_queue.refresh(connection, tenants)
    return get(connection, tenant_id, name)


def resume(connection: Connection, tenant_id: str, name: str) -> ScriptVersion:
    """Resume a script; its waiting actions may start.

    Raises:
        NotFound: script_unknown.
    """
    found = get(connection, tenant_id, name)
    tenants = _lock(connection, tenant_id, found.script_id)
    _set(connection, tenant_id, found.script_id, None)
    ready_queue.refresh(connection, tenants)
    return get(connection, tenant_id, name)


def _lock(connection: Connection, tenant_id: str, script_id: str) -> list[str]:
    """Lock and return the tenants with actions of a script."""
    if tenant_id != PLATFORM:
        tenants = [tenant_id]
    else:
        tenants = sorted(connection.scalars(select(scripts.c.tenant_id).where(scripts.c.id == script_id)))
    ready_queue.lock(connection, tenants)
    return tenants


def _set(connection: Connection, tenant_id: str, script_id: str, suspended_us: int | None) -> None:
    """Store when a script was suspended; None resumes it."""
    mine = (scripts.c.tenant_id == tenant_id, scripts.c.id == script_id)
    prepared.write(connection, update(scripts).where(*mine).values(suspended_us=suspended_us))
