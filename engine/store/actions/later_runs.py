"""One-off runs that scripts, and URLs of scripts, request: stored in the transaction of their request, and bounded."""

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, or_, select, update

from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.ids import is_id
from lodger.engine.core.params import validate_params
from lodger.engine.core.refusal import CallRefused
from lodger.engine.store.actions import actions
from lodger.engine.store.queue.stops import cancel_waiting
from lodger.engine.store.schema.scheduling import actions as table
from lodger.engine.store.schema.scheduling import is_requested
from lodger.engine.store.scripts.bindings import BoundScript, bind, find

_c = table.c
#: Maximum number of a tenant's requested runs that wait.
MAX_WAITING = 10_000
#: Beginnings of ``requested_by``: an action requested the run, or a request to a URL.
BY_ACTION, BY_URL = "action ", "url "
#: Between the script and the key of a later run. Callers' request keys are printable, so none is that of a later run.
_BETWEEN = "\x1f"
#: Reason of a waiting run that a later one with its key has replaced.
REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class LaterRun:
    """A requested run.

    Attributes:
        action_id: id of its action.
        params: JSON text.
        key: names one waiting run of the script.
        requested_by: the run or URL that requested it.
    """

    tenant_id: str
    action_id: str
    script: str
    at_us: int
    params: str
    key: str | None
    requested_by: str


def check(connection: Connection, tenant_id: str, name: str, params: Any, *, unsaved: bool = False) -> None:
    """Refuse a script that the tenant cannot run, or params that it does not declare.

    Args:
        unsaved: a script that is not stored is accepted.

    Raises:
        CallRefused: script_unknown, library_not_run, params_invalid.
    """
    try:
        validate_params(find(connection, tenant_id, name).fields, params)
    except (NotFound, InputError) as error:
        if not (unsaved and isinstance(error, NotFound)):
            raise _refused(error) from None


def request(connection: Connection, run: LaterRun, now_us: int) -> None:
    """Store a run of the script's newest version; a waiting run of the script with its key is cancelled.

    The caller holds the tenant's lock and derives its ready queue afterwards.

    Raises:
        CallRefused: script_unknown, library_not_run, params_invalid, too_many_waiting.
    """
    script = _bound_script(connection, run)
    request_key = None
    if run.key is not None:
        request_key = _request_key(script, run.key)
        keyed = and_(_c.tenant_id == run.tenant_id, _c.request_key == request_key)
        cancel_waiting(connection, and_(keyed, _waiting), now_us, REPLACED)
        # A key names the newest run; one that has started goes on without it.
        connection.execute(update(table).where(keyed).values(request_key=None))
    _insert(connection, run, script, request_key)


def deliver(connection: Connection, run: LaterRun, request_key: str | None) -> None:
    """Store a run that a request to a URL asks for; as :func:`request`, but ``request_key`` is that of the delivery."""
    _insert(connection, run, _bound_script(connection, run), request_key)


def _bound_script(connection: Connection, run: LaterRun) -> BoundScript:
    """Return the newest version of the script that a later run names; raises CallRefused if it cannot run with these params."""
    try:
        script = bind(connection, run.tenant_id, run.script)
        validate_params(script.fields, json.loads(run.params))
    except (NotFound, InputError) as error:
        raise _refused(error) from None
    return script


def _insert(connection: Connection, run: LaterRun, script: BoundScript, request_key: str | None) -> None:
    """Store a later run, unless the tenant has too many waiting."""
    if connection.execute(_bound, {"tenant": run.tenant_id, "others": MAX_WAITING - 1}).first() is not None:
        raise CallRefused("too_many_waiting", f"{MAX_WAITING} requested runs of this tenant are waiting; request fewer")
    values = {
        "tenant_id": run.tenant_id, "origin": "once", "slot": run.at_us, "due_at": run.at_us,
        "script_id": script.script_id, "script_version": script.version, "params": run.params,
        "request_key": request_key, "requires": script.requires, "requested_by": run.requested_by,
    }  # fmt: skip
    actions.insert_ready(connection, run.action_id, values)


def cancel(connection: Connection, tenant_id: str, name: str, run: str, now_us: int) -> None:
    """Cancel the waiting run of a script that a script requested, by its id or key; nothing if there is none."""
    try:
        script = find(connection, tenant_id, name)
    except (NotFound, InputError):
        return
    which = _c.request_key == _request_key(script, run)
    mine = and_(
        _c.tenant_id == tenant_id,
        _c.script_id == script.script_id,
        _c.requested_by.startswith(BY_ACTION),
        or_(which, _c.id == run) if is_id(run) else which,
    )
    cancel_waiting(connection, and_(mine, _waiting), now_us, "requested")


#: It has not started.
_waiting: ColumnElement[bool] = and_(_c.state == "ready", _c.step == 0, _c.attempt == 0)
_bound = select(_c.id).where(_c.tenant_id == bindparam("tenant"), is_requested).limit(1).offset(bindparam("others"))


def _request_key(script: BoundScript, key: str) -> str:
    """Return the request key of a later run's action: the script's id and the key that the script gave."""
    return f"{script.script_id}{_BETWEEN}{key}"


def key_of(request_key: str | None) -> str | None:
    """Return the key that a script gave to its later run; None if it gave none."""
    return (request_key or "").partition(_BETWEEN)[2] or None


def rebound_key(request_key: str | None, before: str, script_id: str) -> str | None:
    """Return the request key of an action after its script got another id; the key of a later run contains the id."""
    if request_key is None or not request_key.startswith(before + _BETWEEN):
        return request_key
    return script_id + request_key[len(before) :]


def _refused(error: NotFound | InputError) -> CallRefused:
    """Return an error about a script or its params as the refusal that the calling script sees."""
    return CallRefused(error.code, f"{error.what}: {error.why}" if error.why else error.what)
