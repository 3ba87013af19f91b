"""Revisions of schedules that a platform's own SQL has inserted: checked like any edit, adopted in the same transaction.

Revisions stay what they are, so SQL adds the next one (a copy of the present one with what is to change) and reports it. What it wrote
is read as a wish, its row is written anew by an ordinary edit, which accounts the old revision up to now and arms the clock.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, func, select

from lodger.engine.acting import Act, present
from lodger.engine.clock import from_us
from lodger.engine.errors import InputError
from lodger.engine.ledger import audit, revisions, schedule_rows, schedules
from lodger.engine.ledger.books import Books
from lodger.engine.ledger.records import ScheduleRevision
from lodger.engine.ledger.schema.scheduling import schedule_revisions
from lodger.engine.shapes import shaped

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

#: What the set of Lodger's own schedules is called where changes are reported.
NAMES = ("schedules", "lodger_schedules")
_r = schedule_revisions.c


def adopt(books: Books, connection: "Connection | Session", tenant_id: str, keys: object, now_us: int) -> None:
    """Make the newest revision that SQL has inserted of each of these schedules (ids or names) the present one.

    Raises:
        NotFound: tenant_unknown, schedule_unknown.
        Conflict: tenant_suspended.
        InputError: revision_unchanged, revision_unreadable, and what an edit refuses.
    """
    found = connection if isinstance(connection, Connection) else connection.connection()
    given: Iterable[Any] = [keys] if isinstance(keys, str) or not isinstance(keys, Iterable) else keys
    for key in given:
        _adopt(books, found, tenant_id, str(key), now_us)


def _adopt(books: Books, connection: Connection, tenant_id: str, schedule: str, now_us: int) -> None:
    before = schedule_rows.get(connection, tenant_id, schedule)
    mine = (_r.tenant_id == tenant_id, _r.schedule_id == before.id, _r.revision > before.revision)
    newest = connection.scalar(select(func.max(_r.revision)).where(*mine))
    if newest is None:
        raise InputError(
            "revision_unchanged",
            f"schedule {before.name!r} has no revision after {before.revision}",
            why="revisions never change: SQL adds the next one, a copy of the present with what is to be different",
            fix="INSERT INTO lodger_schedule_revisions … SELECT …, revision + 1, … WHERE revision = the present one",
        )
    wish = _read(connection, tenant_id, before.id, newest)
    act = Act(present().actor, "sql", wish.why or present().why)
    # It is written anew by the edit, with its sentence, under the next number.
    connection.execute(delete(schedule_revisions).where(*mine))
    change = {
        "rules": wish.rules, "script": wish.steps, "missed": wish.missed, "overlap": wish.overlap, "retry": wish.retry,
        "limits": wish.limits, "params": wish.params, "conduct": wish.conduct, "grants": wish.grants,
    }  # fmt: skip
    gap_s = books.rulebook.smallest_gap_s(wish.rules, from_us(now_us))
    after = schedules.edit(books, connection, tenant_id, before.id, change, now_us, act, gap_s)
    doing = audit.Doing("schedules.edit", tenant_id, before.id, before.name)
    audit.write(books, connection, act, doing, shaped(before), shaped(after), now_us)


def _read(connection: Connection, tenant_id: str, schedule_id: str, number: int) -> ScheduleRevision:
    try:
        return revisions.get(connection, tenant_id, schedule_id, number)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            "revision_unreadable",
            f"revision {number} cannot be read: {type(error).__name__}: {error}",
            why="its columns are written as Lodger writes them: JSON with every field",
            fix="copy the present revision, and change values within it",
        ) from error
