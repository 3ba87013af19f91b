"""Repeats of one action that has ended."""

import json
from functools import partial
from typing import Any

from sqlalchemy import Connection, select

from lodger.engine.core.errors import Conflict, InputError
from lodger.engine.policy.plan import Overlap
from lodger.engine.store.actions import actions
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.context import StoreContext
from lodger.engine.store.queue import schedule_concurrency
from lodger.engine.store.queue.version_pins import newest_versions
from lodger.engine.store.records import Action, AnyRow
from lodger.engine.store.revision_cache import Revision
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.scripts import scripts
from lodger.engine.store.tenants import tenants


def replay(
    context: StoreContext,
    connection: Connection,
    tenant_id: str,
    action_id: str,
    now_us: int,
    *,
    newer: bool = False,
    request_key: str | None = None,
) -> Action:
    """Repeat a finished action from its first step, with its params and slot; it waits for unfinished actions.

    Args:
        newer: run the newest versions of its scripts instead of the original ones. An action without versions always
        runs the newest.
        request_key: one that :func:`lodger.engine.store.actions.actions.find_request` has found nothing for.

    Raises:
        NotFound: action_unknown.
        Conflict: action_open.
        InputError: replay_gap, params_too_large, params_too_deep.
    """
    tenants.require_active(connection, tenant_id)
    row = actions.row_of(connection, tenant_id, action_id)
    if row.state not in actions.FINISHED:
        raise Conflict("action_open", state=row.state)
    if row.slot_to is not None:
        raise InputError("replay_gap")
    revision = None
    if row.schedule_id is not None:
        revision = context.revision_cache.revision(connection, tenant_id, row.schedule_id, row.revision)
    wishes = None if revision is None else revision.limits_of(0)
    (script_id, version, steps), _fits, busy = read_together(
        partial(_scripts, connection, row, revision, newer=newer),
        partial(scripts.check_params, context, connection, tenant_id, row.params, wishes),
        lambda: (
            row.schedule_id is not None
            and schedule_concurrency.has_unfinished(connection, row.schedule_id, row.node_key)
        ),
        connection=connection,
    )
    made: dict[str, Any] = {
        "tenant_id": tenant_id, "schedule_id": row.schedule_id, "revision": row.revision, "origin": "replay",
        "slot": row.slot, "due_at": now_us, "priority": row.priority, "replay_of": row.id, "params": row.params,
        "held": int(busy and revision is not None and revision.policies.overlap is not Overlap.ALLOW),
        "script_id": script_id, "script_version": version, "steps": steps, "request_key": request_key,
        "node_key": row.node_key, "requires": row.requires,
    }  # fmt: skip
    return actions.insert_request(context, connection, made)


def _scripts(
    connection: Connection,
    row: AnyRow,
    revision: Revision | None,
    *,
    newer: bool,
) -> tuple[str, int, str | None]:
    """Return the id of the script, its version and the JSON text of the steps' versions that a repeated action runs."""
    if row.script_id is None:
        first = select(tables.schedule_revisions.c.script_id).where(
            tables.schedule_revisions.c.tenant_id == row.tenant_id,
            tables.schedule_revisions.c.schedule_id == row.schedule_id,
            tables.schedule_revisions.c.revision == row.revision,
        )
        return newest_versions(
            connection, row.tenant_id, str(connection.scalar(first)), revision.steps if revision else ()
        )
    had = json.loads(row.steps) if row.steps else [[row.script_id, row.script_version]]
    if newer:
        return newest_versions(
            connection, row.tenant_id, had[0][0], [{"script_id": script} for script, _version in had]
        )
    return had[0][0], had[0][1], row.steps
