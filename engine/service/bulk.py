"""Changes of everything that matches a filter: a call changes a part, in one transaction, and its cursor leads to the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, func, select

from lodger.engine.core.errors import Conflict, Explained, InputError
from lodger.engine.store import signing_keys
from lodger.engine.store.connection.savepoint import savepoint
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.usage import storage_usage

#: Most objects that one call changes, and most that are counted.
MAX_PART, MAX_COUNTED = 500, 1_000_000


@dataclass(frozen=True, slots=True)
class Matched:
    """Number of objects that match a filter. ``complete`` is false if there are more than were counted."""

    count: int
    complete: bool


@dataclass(frozen=True, slots=True)
class BulkResult:
    """How far a bulk change has come.

    Attributes:
        matched: number of objects that matched when it began.
        done: number of changed ones.
        refused: number of the others by the code of the error.
        next: cursor of the next call; None when all are done.
    """

    matched: int
    done: int
    refused: dict[str, int] = field(default_factory=dict)
    next: str | None = None


def counted(connection: Connection, statement: Select[Any]) -> Matched:
    """Count the rows of a statement, up to :data:`MAX_COUNTED`."""
    some = statement.order_by(None).limit(MAX_COUNTED + 1).subquery()
    found = connection.scalar(select(func.count()).select_from(some)) or 0
    return Matched(min(found, MAX_COUNTED), found <= MAX_COUNTED)


@dataclass(frozen=True, slots=True)
class Part:
    """One call of a bulk change.

    Attributes:
        of: the change with its filter, which the cursor is bound to.
        matching: returns the statement of the matching pairs of tenant and id, at an instant.
        identity: the column of the ids; the newest come first.
        change: changes one object.
        stores: whether a change stores data of the tenant.
    """

    of: str
    matching: Callable[[int], Select[Any]]
    identity: Any
    change: Callable[[str, str], object]
    stores: bool = False

    def carry_out(
        self, context: Any, connection: Connection, cursor: str | None, limit: int, now_us: int
    ) -> BulkResult:
        """Change the next objects.

        Raises:
            InputError: cursor_invalid, limit_invalid.
        """
        if not 1 <= limit <= MAX_PART:
            raise InputError("limit_invalid", limit=limit, maximum=MAX_PART)
        if cursor is None:
            began, last, refused = now_us, None, {}
            done, matched = 0, counted(connection, self.matching(now_us)).count
        else:
            place: Any = signing_keys.decode_cursor(connection, self.of, cursor)
            began, last, matched, done, refused = place
        statement = self.matching(began)
        if last is not None:
            statement = statement.where(self.identity < last)
        rows: Sequence[Any] = connection.execute(statement.order_by(self.identity.desc()).limit(limit + 1)).all()
        more, rows = len(rows) > limit, rows[:limit]
        tenants = sorted({row.tenant_id for row in rows})
        ready_queue.lock(connection, tenants)
        full = {each for each in tenants if self.stores and storage_usage.excess(context, connection, each).total}
        for row in rows:
            try:
                if row.tenant_id in full:
                    raise Conflict("storage_full", tenant=row.tenant_id, limit=0)
                with savepoint(connection):
                    self.change(row.tenant_id, row.id)
                done += 1
            except Explained as error:
                refused[error.code] = refused.get(error.code, 0) + 1
        following = None
        if more:
            following = signing_keys.encode_cursor(connection, self.of, [began, rows[-1].id, matched, done, refused])
        return BulkResult(matched, done, dict(refused), following)
