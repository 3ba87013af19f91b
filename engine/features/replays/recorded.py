"""Which attempts of a script are recorded, and the records."""

from collections.abc import Collection

from sqlalchemy import Connection, literal_column, select, update

from lodger.engine.core.access.names import ordinal
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.store.drivers import prepared
from lodger.engine.store.records import ScriptVersion
from lodger.engine.store.schema.scheduling import attempt_records, scripts
from lodger.engine.store.scripts.content import Content
from lodger.engine.store.scripts.scripts import content, get

KEEP = ("failed", "all", "none")

#: Scripts that are not recorded as usual.
unusual = select(scripts.c.tenant_id, scripts.c.name, scripts.c.record).where(scripts.c.record.is_not(None))
#: The first of their tenants, None if there is none. In the index's order: without statistics PostgreSQL would read all scripts.
first = (
    unusual.with_only_columns(scripts.c.tenant_id)
    .order_by(scripts.c.tenant_id, scripts.c.name)
    .limit(literal_column("1"))
    .scalar_subquery()
)


def load(connection: Connection, tenant_ids: Collection[str]) -> dict[tuple[str, str], str]:
    """Return how scripts (tenant, name) of these tenants are recorded, of those that are not recorded as usual."""
    mine = unusual.where(scripts.c.tenant_id.in_(tenant_ids))
    return {(tenant, name): keep for tenant, name, keep in connection.execute(mine)}


def choice(connection: Connection, script: ScriptVersion) -> str:
    """Return which attempts of a script are recorded."""
    mine = (scripts.c.tenant_id == script.tenant_id, scripts.c.id == script.script_id)
    return connection.scalar(select(scripts.c.record).where(*mine)) or KEEP[0]


def keep(connection: Connection, script: ScriptVersion, which: str) -> ScriptVersion:
    """Set which attempts of a script are recorded.

    Raises:
        InputError: record_unknown.
    """
    if which not in KEEP:
        raise InputError("record_unknown", which=which)
    mine = (scripts.c.tenant_id == script.tenant_id, scripts.c.id == script.script_id)
    prepared.write(connection, update(scripts).where(*mine).values(record=None if which == KEEP[0] else which))
    return script


def body(connection: Connection, tenant_id: str, action_id: str, attempt: int | None) -> bytes:
    """Return an attempt's stored record; that of the last recorded attempt by default.

    Raises:
        NotFound: record_missing.
    """
    t = attempt_records.c
    statement = select(t.body).where(t.tenant_id == tenant_id, t.action_id == action_id)
    if attempt is not None:
        statement = statement.where(t.n == ordinal(attempt))
    found = connection.scalar(statement.order_by(t.step.desc(), t.n.desc()).limit(1))
    if found is None:
        raise NotFound("record_missing", action=action_id, attempt="" if attempt is None else f" of attempt {attempt}")
    return bytes(found)


def source(connection: Connection, tenant_id: str, name: str, version: int) -> Content | None:
    """Return the source of a version; None if it is not a script that this tenant has stored."""
    try:
        found = get(connection, tenant_id, name, version)
    except NotFound:
        return None
    return content(connection, found) if found.kind == "script" else None
