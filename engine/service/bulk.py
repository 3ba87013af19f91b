"""Changes of everything that matches a filter: a call changes a part, in one transaction, and its cursor leads to the rest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Select, func, select

from lodger.engine.core.errors import Conflict, Explained, InputError
from lodger.engine.store import signing_keys
from lodger.engine.store.connection.savepoint import savepoint
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.tenants import tenants
from lodger.engine.store.usage import storage_usage

if TYPE_CHECKING:
    from lodger.engine.service.nouns.base import Change

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
    driver_of(connection).allow_scans(connection)
    some = statement.order_by(None).limit(MAX_COUNTED + 1).subquery()
    found = connection.scalar(select(func.count()).select_from(some)) or 0
    return Matched(min(found, MAX_COUNTED), found <= MAX_COUNTED)


@dataclass(frozen=True, slots=True)
class Bulk:
    """Changes of all objects of a noun that match a filter.

    Attributes:
        noun: its name in the plural.
        verbs: by name, the change of the object of a tenant with an id.
        matching: returns the statement of the matching pairs of tenant and id, at an instant; the newest come first.
        storing: verbs that store data of the tenant.
    """

    noun: str
    verbs: Mapping[str, Callable[[str, str], object]]
    matching: Callable[[int], Select[Any]]
    storing: frozenset[str] = frozenset()

    def carry_out(
        self,
        context: StoreContext,
        change: "Change",
        do: str,
        tenant_id: str | None,
        filtered: str,
        limit: int,
        cursor: str | None,
    ) -> BulkResult:
        """Change the next objects that match a filter, of one tenant or of all.

        Raises:
            InputError: bulk_unknown, cursor_invalid, limit_invalid.
            NotFound: tenant_unknown.
        """
        connection, refused = change.connection, {}
        if do not in self.verbs:
            raise InputError("bulk_unknown", word=do, words=list(self.verbs))
        if not 1 <= limit <= MAX_PART:
            raise InputError("limit_invalid", limit=limit, maximum=MAX_PART)
        if tenant_id is not None:
            tenants.get(connection, tenant_id)
        of = f"{self.noun}:{do}:{tenant_id}:{filtered}"
        if cursor is None:
            began, last = context.clock.now_us(), None
            done, matched = 0, counted(connection, self.matching(began)).count
        else:
            place: Any = signing_keys.decode_cursor(connection, of, cursor)
            if place is None:  # an empty cursor does not begin the change again
                raise InputError("cursor_invalid")
            began, last, matched, done, refused = place
        statement = self.matching(began)
        identity = statement.selected_columns.id
        if last is not None:
            statement = statement.where(identity < last)
        rows: Sequence[Any] = connection.execute(statement.order_by(identity.desc()).limit(limit + 1)).all()
        more, rows = len(rows) > limit, rows[:limit]
        of_rows = sorted({row.tenant_id for row in rows})
        ready_queue.lock(connection, of_rows)
        full = {
            each for each in of_rows if do in self.storing and storage_usage.excess(context, connection, each).total
        }
        for row in rows:
            try:
                if row.tenant_id in full:
                    raise Conflict("storage_full", tenant=row.tenant_id, limit=0)
                with savepoint(connection):
                    self.verbs[do](row.tenant_id, row.id)
                done += 1
            except Explained as error:
                refused[error.code] = refused.get(error.code, 0) + 1
        following = None
        if more:
            following = signing_keys.encode_cursor(connection, of, [began, rows[-1].id, matched, done, refused])
        result = BulkResult(matched, done, dict(refused), following)
        return change.made(result, {"do": do, "filter": filtered, "matched": matched}, changed=cursor is None)
