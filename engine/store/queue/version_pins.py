"""Script versions of the steps of an action: fixed when the action is created, so that they never change while it waits."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from lodger.engine.store.schema.scheduling import scripts


def pin(connection: Connection, tenant_id: str, steps: Sequence[dict[str, Any]]) -> str | None:
    """Return the steps' script versions, pinned or newest, as JSON ``[[script_id, version], …]``; None for one step."""
    if len(steps) < 2:
        return None
    ids = sorted({step["script_id"] for step in steps})
    found = connection.execute(
        select(scripts.c.id, scripts.c.version).where(scripts.c.tenant_id == tenant_id, scripts.c.id.in_(ids))
    )
    versions = {row.id: row.version for row in found}
    return json.dumps([[step["script_id"], step.get("version") or versions[step["script_id"]]] for step in steps])


def first_version(steps: Sequence[dict[str, Any]], newest_version: int) -> int:
    """Return the version that the first step runs: the pinned one, else the newest."""
    return int(steps[0].get("version") or newest_version) if steps else newest_version


def newest_versions(
    connection: Connection, tenant_id: str, script_id: str, steps: Sequence[dict[str, Any]]
) -> tuple[str, int, str | None]:
    """Return the first script, its version from now on, and the steps as :func:`pin` does."""
    version = connection.scalar(
        select(scripts.c.version).where(scripts.c.tenant_id == tenant_id, scripts.c.id == script_id)
    )
    return script_id, first_version(steps, int(version or 0)), pin(connection, tenant_id, steps)


def next_step(steps: str | None, present: int) -> tuple[str, int] | None:
    """Return (script id, version) of the next step, or None after the last."""
    if steps is None:
        return None
    listed = json.loads(steps)
    return tuple(listed[present + 1]) if present + 1 < len(listed) else None
