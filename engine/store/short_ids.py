"""Short ids: the beginning or the end of an id, wherever it is unique."""

import re

from sqlalchemy import Connection, String, Table, cast, select

from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import is_id
from lodger.engine.store.schema import scheduling as tables

#: Minimum length of a short id. A schedule's is longer, so that a misspelt name is not taken for one.
MIN_CHARACTERS = {"action": 4, "schedule": 8}
#: Number of the newest ids that are compared by their ends, for which there is no index.
NEWEST = 10_000
_LEAST = "00000000-0000-0000-0000-000000000000"
_PART = re.compile(r"[0-9a-f]+(-[0-9a-f]+)*", re.ASCII)


def action_id(connection: Connection, tenant_id: str | None, given: str) -> str:
    """Return the id of the action with an id that begins or ends with ``given``; ``given`` itself if there is none.

    Args:
        tenant_id: None for the actions of every tenant.

    Raises:
        InputError: action_ambiguous.
    """
    return _whole(connection, "action", tables.actions, tenant_id, given)


def schedule_id(connection: Connection, tenant_id: str, given: str) -> str:
    """Return the id of the tenant's schedule with an id that begins or ends with ``given``; ``given`` itself if there is none.

    Raises:
        InputError: schedule_ambiguous.
    """
    return _whole(connection, "schedule", tables.schedules, tenant_id, given)


def _whole(connection: Connection, kind: str, table: Table, tenant_id: str | None, given: str) -> str:
    """Return the whole id that a part belongs to; the part if it belongs to none."""
    ids, tenant = table.c.id, table.c.tenant_id
    part = given.lower()
    if is_id(part) or not MIN_CHARACTERS[kind] <= len(part) <= 36 or not _PART.fullmatch(part):
        return given
    of_tenant = tenant == tenant_id if tenant_id is not None else tenant.in_(select(tables.tenants.c.id))
    every = select(ids.label("id")).where(of_tenant)
    newest = every.order_by(ids.desc()).limit(NEWEST).subquery()
    ends = connection.scalars(select(newest.c.id).where(cast(newest.c.id, String).like(f"%{part}")).limit(4))
    found = {*ends}
    # Whole ids are compared, because PostgreSQL compares them with nothing else.
    least, greatest = (part + rest[len(part) :] for rest in (_LEAST, _LEAST.replace("0", "f")))
    if is_id(least):
        found |= {*connection.scalars(every.where(ids >= least, ids <= greatest).limit(4))}
    if len(found) > 1:
        several = sorted(found)
        raise InputError(f"{kind}_ambiguous", given=given, found=[*several[:3], *(["…"] if len(found) > 3 else [])])
    return found.pop() if found else given
