"""Adoption of schedule revisions that a platform's own SQL has inserted.

Revisions are immutable, so SQL inserts the next one: a copy of the present revision with changed values. It is checked
like any edit and stored again by an ordinary edit, which accounts the old revision up to now and arms the clock. This
happens in SQL's own transaction if the change is reported, else on a node: a trigger records unreported revisions.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from lodger.engine.core.access.audit_context import AuditContext, current_audit_context
from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.store import audit
from lodger.engine.store.context import StoreContext
from lodger.engine.store.records import Schedule, ScheduleRevision
from lodger.engine.store.revision_cache import PreparedRules
from lodger.engine.store.schedules import revisions, schedule_rows, schedules
from lodger.engine.store.schema.access import adoptions
from lodger.engine.store.schema.scheduling import schedule_revisions, tenants
from lodger.engine.store.schema.scheduling import schedules as schedules_table
from lodger.engine.store.stores.prepared import Prepared

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

#: Names of the set of Lodger's own schedules in reports of changes.
NAMES = ("schedules", "lodger_schedules")
#: Maximum number of schedules that a node adopts in one round.
MAX_ROWS = 100
#: Beginning of a schedule's note about a revision that was refused.
REFUSED = "a revision inserted by SQL was refused: "
_r, _a = schedule_revisions.c, adoptions.c


@dataclass(frozen=True, slots=True)
class Candidate:
    """The newest revision of a schedule that SQL has inserted, with compiled rules."""

    number: int
    revision: ScheduleRevision
    rules: PreparedRules


def adopt(context: StoreContext, connection: "Connection | Session", tenant_id: str, keys: object, now_us: int) -> None:
    """Make the newest inserted revision of each of these schedules (ids or names) the present one.

    Raises:
        NotFound: tenant_unknown, schedule_unknown.
        Conflict: tenant_suspended.
        InputError: revision_unchanged, revision_unreadable, and the errors of an edit.
    """
    found = connection if isinstance(connection, Connection) else connection.connection()
    given: Iterable[Any] = [keys] if isinstance(keys, str) or not isinstance(keys, Iterable) else keys
    for key in given:
        before = schedule_rows.get(found, tenant_id, str(key))
        _adopt(context, found, before, _candidate(context, found, before, now_us), now_us, current_audit_context())
        found.execute(delete(adoptions).where(_a.tenant_id == tenant_id, _a.schedule_id == before.id))


def list_unreported(connection: Connection) -> list[tuple[str, str]]:
    """Return tenant and id of up to :data:`MAX_ROWS` schedules of active tenants with an unreported revision."""
    return [(row[0], row[1]) for row in _unreported.rows(connection, {})]


_unreported = Prepared(
    lambda _driver: (
        select(_a.tenant_id, _a.schedule_id)
        .where(select(tenants.c.state).where(tenants.c.id == _a.tenant_id).scalar_subquery() == "active")
        .order_by(_a.tenant_id, _a.schedule_id)
        .limit(MAX_ROWS)
    )
)


def prepare(
    context: StoreContext, connection: Connection, tenant_id: str, schedule_id: str, now_us: int
) -> Candidate | InputError:
    """Read and compile the newest inserted revision, before the transaction that adopts it.

    Returns:
        The candidate for :func:`adopt_candidate`, or the error that refuses it.
    """
    number = _newest(connection, tenant_id, schedule_id)
    try:
        before = schedule_rows.get(connection, tenant_id, schedule_id)
        context.revision_cache.revision(
            connection, tenant_id, before.id, before.revision
        )  # compiled to account its slots
        return _candidate(context, connection, before, now_us)
    except InputError as error:
        return error
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        return _unreadable(number or 0, error)


def adopt_candidate(
    context: StoreContext,
    connection: Connection,
    tenant_id: str,
    schedule_id: str,
    prepared: Candidate | InputError,
    now_us: int,
) -> InputError | None:
    """Adopt an inserted revision unless another node has done so; return the error if it was refused.

    A refused revision is deleted and the schedule's note gives the reason, unless the schedule is paused.

    Args:
        prepared: result of :func:`prepare`; a revision inserted since then stays queued.
    """
    if connection.scalar(select(tenants.c.state).where(tenants.c.id == tenant_id)) != "active":
        return None  # queued until the tenant is resumed
    if isinstance(prepared, Candidate) and prepared.number != _newest(connection, tenant_id, schedule_id):
        return None
    if not connection.execute(
        delete(adoptions).where(_a.tenant_id == tenant_id, _a.schedule_id == schedule_id)
    ).rowcount:
        return None
    try:
        before = schedule_rows.get(connection, tenant_id, schedule_id)
    except NotFound as gone:  # deleted meanwhile
        _delete_inserted(connection, tenant_id, schedule_id)
        return gone
    refused: InputError | None = None
    try:
        if isinstance(prepared, InputError):
            raise prepared
        with connection.begin_nested():
            _adopt(context, connection, before, prepared, now_us, AuditContext("sql", "node"))
    except InputError as error:
        refused = error
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        refused = _unreadable(before.revision + 1, error)  # an unreadable revision must not block those after it
    if refused is not None:
        _delete_inserted(connection, tenant_id, schedule_id)
    if before.state != "paused":
        note = f"{REFUSED}{refused.code}: {refused}" if refused is not None else None
        mine = (schedules_table.c.tenant_id == tenant_id, schedules_table.c.id == schedule_id)
        connection.execute(update(schedules_table).where(*mine).values(note=note))
    return refused


def _inserted(tenant_id: str, schedule_id: str) -> list[ColumnElement[bool]]:
    """Return conditions that select the revisions after the present one, which SQL has inserted."""
    s = schedules_table.c
    current = select(s.revision).where(s.tenant_id == tenant_id, s.id == schedule_id).scalar_subquery()
    return [_r.tenant_id == tenant_id, _r.schedule_id == schedule_id, _r.revision > current]


def _newest(connection: Connection, tenant_id: str, schedule_id: str) -> int | None:
    number: int | None = connection.scalar(select(func.max(_r.revision)).where(*_inserted(tenant_id, schedule_id)))
    return number


def _delete_inserted(connection: Connection, tenant_id: str, schedule_id: str) -> None:
    """Delete the inserted revisions."""
    connection.execute(delete(schedule_revisions).where(*_inserted(tenant_id, schedule_id)))


def _candidate(context: StoreContext, connection: Connection, before: Schedule, now_us: int) -> Candidate:
    number = _newest(connection, before.tenant_id, before.id)
    if number is None:
        raise InputError(
            "revision_unchanged",
            f"schedule {before.name!r} has no revision after {before.revision}",
            why="existing revisions never change; a change by SQL inserts a changed copy of the current revision with the next number",
            fix="INSERT INTO lodger_schedule_revisions … SELECT …, revision + 1, … WHERE revision = the current one",
        )
    revision = _read(connection, before.tenant_id, before.id, number)
    return Candidate(number, revision, context.revision_cache.prepare(revision.rules, from_us(now_us)))


def _adopt(
    context: StoreContext, connection: Connection, before: Schedule, candidate: Candidate, now_us: int, by: AuditContext
) -> None:
    wish = candidate.revision
    audit_context = AuditContext(by.actor, "sql", wish.why or by.why)
    # The edit below stores it again under the next number, with its sentence.
    _delete_inserted(connection, before.tenant_id, before.id)
    change = {
        "rules": candidate.rules,
        "script": wish.steps, "missed": wish.missed, "overlap": wish.overlap, "retry": wish.retry,
        "limits": wish.limits, "params": wish.params, "conduct": wish.conduct, "grants": wish.grants,
    }  # fmt: skip
    after = schedules.edit(context, connection, before.tenant_id, before.id, change, now_us, audit_context)
    doing = audit.AuditSubject("schedules.edit", before.tenant_id, before.id, before.name)
    audit.write(context, connection, audit_context, doing, to_jsonable(before), to_jsonable(after), now_us)


def _read(connection: Connection, tenant_id: str, schedule_id: str, number: int) -> ScheduleRevision:
    try:
        return revisions.get(connection, tenant_id, schedule_id, number)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise _unreadable(number, error) from error


def _unreadable(number: int, error: Exception) -> InputError:
    return InputError(
        "revision_unreadable",
        f"revision {number} cannot be read: {type(error).__name__}: {error}",
        why="its columns must hold JSON with every field, as Lodger writes it",
        fix="copy the current revision, and change values in the copy",
    )
