"""Host side of ``db``: questions. The database answers for rows that the journal has not touched, the journal for the rest."""

from typing import Any

from sqlalchemy import Connection

from lodger.engine.capabilities.session import Session
from lodger.engine.data import aggregate, kinds, wire
from lodger.engine.data.aggregate import Measure, Parts, Wanted
from lodger.engine.data.cursor import read_cursor, write_cursor
from lodger.engine.data.dataset import Dataset
from lodger.engine.data.evaluator import Row, terms_of
from lodger.engine.data.fields import ColumnField
from lodger.engine.data.filters import Filter, read_filter, read_order
from lodger.engine.data.reader import Reader
from lodger.engine.effects.effect import on_wire

PAGE_ROWS = 500
PAGE_BYTES = 512 * 1024
DEFAULT_LIMIT = 100


async def find(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Answer db.find: at most a page; ``cursor`` says where the next begins, null after the last."""
    rows = session.datasets.named(given["set"])
    tree = read_filter(given["filter"], rows.lookup)
    order = read_order(given["order"], rows.lookup, rows.key)
    place = None if given["cursor"] is None else read_cursor(given["cursor"], rows.name, order)
    limit = min(given["limit"] or DEFAULT_LIMIT, PAGE_ROWS)
    session.budgets.spend("queries")
    left = session.journal.untouched(rows)

    def ask(connection: Connection) -> list[Row]:
        reader = Reader(connection, session.scope)
        return reader.page(rows, tree, order, limit + 1, after=place, without=left)

    committed = await session.read(ask, rows)
    found = session.journal.page(rows, tree, order, limit + 1, place, committed)
    shown: list[dict[str, Any]] = []
    size = 0
    for row in found[:limit]:
        made = on_wire(rows, row)
        size += len(wire.dump(made))
        if shown and size > PAGE_BYTES:
            break
        shown.append(made)
    given_rows = found[: len(shown)]
    session.budgets.spend("rows_read", len(shown))
    session.journal.saw(rows, given_rows)
    more = len(found) > len(shown)
    last = given_rows[-1] if given_rows else None
    return {"rows": shown, "cursor": write_cursor(rows.name, order, terms_of(order, last)) if more and last else None}


async def get(session: Session, given: dict[str, Any]) -> Any:
    """Answer db.get; absent and another tenant's are both null."""
    rows = session.datasets.named(given["set"])
    key = read_key(rows, given["id"])
    touched = session.journal.of(rows).touched.get(key)
    row = touched.now if touched is not None else await committed_row(session, rows, key)
    if row is None:
        return None
    session.budgets.spend("rows_read")
    session.journal.saw(rows, [row])
    if given["check"]:
        session.journal.check(rows, key)
    return on_wire(rows, row)


async def count(session: Session, given: dict[str, Any]) -> int:
    """Answer db.count."""
    rows = session.datasets.named(given["set"])
    tree = read_filter(given["filter"], rows.lookup)
    parts = await _parts(session, rows, tree, Wanted())
    return parts[()].count if parts else 0


async def aggregates(session: Session, given: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer db.aggregate."""
    rows = session.datasets.named(given["set"])
    tree = read_filter(given["filter"], rows.lookup)
    asked = {measure.value: given[measure.value] for measure in Measure if given[measure.value] is not None}
    wanted = aggregate.read_wanted(asked, given["groupBy"], rows.lookup)
    shown = aggregate.shown(wanted, await _parts(session, rows, tree, wanted))
    session.budgets.spend("rows_read", len(shown))
    return shown


async def _parts(session: Session, rows: Dataset, tree: Filter, wanted: Wanted) -> Parts:
    session.budgets.spend("queries")
    left = session.journal.untouched(rows)

    def ask(connection: Connection) -> Parts:
        return Reader(connection, session.scope).aggregate(rows, tree, wanted, without=left)

    return aggregate.merged(wanted, await session.read(ask, rows), session.journal.measured(rows, tree, wanted))


async def committed_row(session: Session, rows: Dataset, key: Any) -> Row | None:
    """Read one committed row; it counts as a query."""
    session.budgets.spend("queries")

    def ask(connection: Connection) -> Row | None:
        return Reader(connection, session.scope).rows(rows, [key]).get(key)

    return await session.read(ask, rows)


def read_key(rows: Dataset, given: Any) -> Any:
    """Make the canonical key of an id as a script gave it.

    Raises:
        CallRefused: ``bad_request``: another type.
    """
    key: ColumnField = rows.key
    return kinds.read(key.kind, given, f"the id of {rows.name}")


HANDLERS = {"db.find": find, "db.get": get, "db.count": count, "db.aggregate": aggregates}
