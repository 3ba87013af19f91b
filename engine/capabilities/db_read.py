"""Host side of ``db`` for queries: rows come from the database, or from the journal if the attempt has written them."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection

from lodger.engine.capabilities.session import Session
from lodger.engine.core import strict_json
from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.engine.data.filtering import aggregate
from lodger.engine.data.filtering.aggregate import AggregateQuery, Measure, PartialAggregates
from lodger.engine.data.filtering.cursor import read_cursor, write_cursor
from lodger.engine.data.filtering.evaluator import Row, terms_of, value_of
from lodger.engine.data.filtering.parsing import (
    Compare,
    Filter,
    Lookup,
    Not,
    Op,
    Or,
    Order,
    never_instants,
    operand,
    read_filter,
    read_order,
)
from lodger.engine.data.reading.document_index import asks_paths
from lodger.engine.data.reading.reader import Reader
from lodger.engine.data.reading.related import RelatedRows, Relation, fields_of, lookup_of, relations
from lodger.engine.data.sets.dataset import Collection, Dataset
from lodger.engine.data.values import kinds
from lodger.engine.data.values.fields import OTHER, TIME, ColumnField, PathField, RelatedField
from lodger.engine.effects.effect import on_wire
from lodger.engine.effects.journal import unchanged_row
from lodger.engine.store.drivers import prepared

PAGE_ROWS = 500
PAGE_BYTES = 512 * 1024
DEFAULT_LIMIT = 100


async def find(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Handle db.find: return at most a page, and the cursor of the next one, null after the last."""
    rows = session.datasets.named(given["set"])
    tree = read_filter(given["filter"], lookup(session, rows))
    included = _included(session, rows, given["include"])
    select = _selected(rows, given["select"])
    order = read_order(given["order"], rows.lookup, rows.key)
    place = None if given["cursor"] is None else read_cursor(given["cursor"], rows.name, order)
    limit = min(given["limit"] or DEFAULT_LIMIT, PAGE_ROWS)
    found, cut, company = await read_page(session, rows, tree, order, limit + 1, after=place, included=included)
    if not found and place is None:
        await refuse_misread(session, rows, tree)
    shown: list[dict[str, Any]] = []
    # A worker's limit for one answer may be lower than a page.
    size, maximum = 0, min(PAGE_BYTES, session.fetch_state.frame_bytes // 2)
    for row in found[:limit]:
        made = on_wire(rows, row)
        if select is not None:
            made = {name: value for name, value in made.items() if name in select}
        made |= _related(session, company, included, row)
        size += len(strict_json.dump(made).encode())
        if shown and size > maximum:
            break
        shown.append(made)
    given_rows = found[: len(shown)]
    for term in order:
        if isinstance(term.field, PathField) and any(value_of(term.field, row)[0] == OTHER for row in given_rows):
            raise CallRefused(
                "not_comparable",
                f"order needs single values, but {term.field.name} has lists or objects; exclude them with a filter, "
                "or sort the rows in the script",
            )
    session.budgets.spend("rows_read", len(shown))
    session.journal.record_read(rows, given_rows)
    more = cut or len(found) > len(shown)
    last = given_rows[-1] if given_rows else None
    return {"rows": shown, "cursor": write_cursor(rows.name, order, terms_of(order, last)) if more and last else None}


async def read_page(
    session: Session,
    rows: Dataset,
    tree: Filter,
    order: tuple[Order, ...],
    limit: int,
    *,
    after: Sequence[Any] | None = None,
    included: Sequence[Relation] = (),
    max_bytes: int | None = None,
) -> tuple[list[Row], bool, RelatedRows]:
    """Query the first rows that match, with the attempt's own writes; each included relation is a query more.

    Args:
        after: position in the order after which they begin.
        included: relations whose rows are fetched, too.
        max_bytes: maximum size of the rows; None for that of a page.

    Returns:
        The rows, whether their size made them fewer than ``limit``, and their related rows.
    """
    session.budgets.spend("queries", 1 + len(included))
    journal, left = session.journal, session.journal.excluded_keys(rows)
    company, fields = RelatedRows(journal.written), tuple(fields_of(tree))

    def query_page(connection: Connection) -> tuple[list[Row], bool] | None:
        """Return the page, or None if a known index has come or gone."""
        reader = Reader(connection, session.scope, journal.written, session.indexed_paths)
        if not (included or fields) and _knows_indexes(session, rows, tree):
            prepared.last(connection)
        committed, cut = reader.page(rows, tree, order, limit, after=after, without=left, max_bytes=max_bytes)
        transform = _row_transform(reader, company, journal.written(rows).values(), fields)
        found = journal.page(rows, tree, order, limit, after, committed, transform, cut=cut)
        company.fetch(reader, ((each.target, _column_values(found, each.link.name)) for each in included))
        return (found, cut) if reader.is_current() else None

    while (answer := await session.read(query_page, rows)) is None:
        pass
    return *answer, company


async def get(session: Session, given: dict[str, Any]) -> Any:
    """Handle db.get; missing rows and those of other tenants are both null."""
    rows = session.datasets.named(given["set"])
    key = read_key(rows, given["id"])
    touched = session.journal.of(rows).touched.get(key)
    row = touched.now if touched is not None else await committed_row(session, rows, key)
    if row is None:
        return None
    session.budgets.spend("rows_read")
    session.journal.record_read(rows, [row])
    if given["check"]:
        session.journal.check(rows, key)
    included = _included(session, rows, given["include"])
    company = RelatedRows(session.journal.written)
    if included:
        session.budgets.spend("queries", len(included))

        def fetch_related(connection: Connection) -> None:
            """Read the rows that the found row refers to."""
            reader = Reader(connection, session.scope)
            company.fetch(reader, ((each.target, [row[each.link.name]]) for each in included))

        await session.read(fetch_related, rows)
    return on_wire(rows, row) | _related(session, company, included, row)


def _knows_indexes(session: Session, rows: Dataset, tree: Filter) -> bool:
    """Whether a query can do without asking first which paths are indexed: for a table, or if the attempt has asked for this collection."""
    return not isinstance(rows, Collection) or rows.name in session.indexed_paths or not asks_paths(tree)


def lookup(session: Session, rows: Dataset) -> Lookup:
    """Return the lookup of a filter's fields: those of the dataset, and of readable datasets that its keys refer to."""
    return lookup_of(rows, session.datasets, partial(_may_read, session))


def _may_read(session: Session, name: str) -> bool:
    """Whether the grants of the run allow reading a dataset."""
    return session.claim.grants.of_rows(name, exposed=True, write=False)


def _included(session: Session, rows: Dataset, asked: list[str] | None) -> list[Relation]:
    """Return the relations to include, if the run may read them."""
    known = relations(rows, session.datasets, partial(_may_read, session)) if asked else {}
    for name in asked or ():
        if name not in known:
            raise bad_request(f"{rows.name} has the relations: {', '.join(sorted(known)) or 'none'}")
    return [known[name] for name in dict.fromkeys(asked or ())]


def _selected(rows: Dataset, asked: list[str] | None) -> set[str] | None:
    """Return the columns, or the top-level members of documents, that rows are returned with; the key always, None for all."""
    if asked is None:
        return None
    for name in asked:
        if "." in name:
            raise bad_request("'select' takes columns, or members of documents without a point")
        rows.lookup(name)
    return {rows.key.name, *asked}


def _column_values(found: Iterable[Row | None], name: str) -> set[Any]:
    """Return the values of a column in the rows that exist, those that are not None."""
    return {row[name] for row in found if row is not None}


def _row_transform(
    reader: Reader, company: RelatedRows, own: Iterable[Row | None], fields: Sequence[RelatedField]
) -> Callable[[Row], Row]:
    """Return a function that adds related rows to the journal's rows, as far as the filter needs them."""
    if not fields:
        return unchanged_row
    written = list(own)
    company.fetch(reader, ((field.target, _column_values(written, field.link.name)) for field in fields))
    return partial(company.with_related, fields=fields)


def _related(session: Session, company: RelatedRows, included: Iterable[Relation], row: Row) -> dict[str, Any]:
    """Return the related rows of a row in wire form; each counts as a read row."""
    shown: dict[str, Any] = {}
    for each in included:
        found = company.of(each.target, row[each.link.name])
        if found is not None:
            session.budgets.spend("rows_read")
            session.journal.record_read(each.target, [found])
        shown[each.name] = None if found is None else on_wire(each.target, found)
    return shown


async def count(session: Session, given: dict[str, Any]) -> int:
    """Handle db.count: return the number of matching rows."""
    rows = session.datasets.named(given["set"])
    tree = read_filter(given["filter"], lookup(session, rows))
    _, parts = await _parts(session, rows, tree, AggregateQuery())
    if not parts:
        await refuse_misread(session, rows, tree)
    return parts[()].count if parts else 0


async def aggregates(session: Session, given: dict[str, Any]) -> list[dict[str, Any]]:
    """Handle db.aggregate: return counts, sums and extremes by group."""
    rows = session.datasets.named(given["set"])
    tree = read_filter(given["filter"], lookup(session, rows))
    asked = {measure.value: given[measure.value] for measure in Measure if given[measure.value] is not None}
    wanted = aggregate.read_wanted(asked, given["groupBy"], rows.lookup)
    whole, parts = await _parts(session, rows, tree, wanted)
    if not parts:
        await refuse_misread(session, rows, tree)
    shown = aggregate.shown(whole, parts)
    session.budgets.spend("rows_read", len(shown))
    return shown


async def refuse_misread(session: Session, rows: Dataset, tree: Filter) -> None:
    """Refuse a filter without a match that compares a field of instants alone with values that are none: a query or two for each.

    Raises:
        CallRefused: ``bad_request``.
    """
    for field in dict.fromkeys(never_instants(tree)):
        instants = Compare(field, Op.GTE, (TIME, ""))
        others = Not(Or((instants, Compare(field, Op.EQ, operand(field, None, Op.EQ)))))
        if await _any_row(session, rows, instants) and not await _any_row(session, rows, others):
            raise bad_request(
                f"{field.name} holds instants, which no such text or number matches; compare it with an instant (now.subtract(…)), "
                "a Date, text such as 2026-11-27T08:00:00Z or milliseconds since 1970"
            )


async def _any_row(session: Session, rows: Dataset, tree: Filter) -> bool:
    """Whether the filter matches a row."""
    return bool((await _parts(session, rows, tree, AggregateQuery()))[1])


async def _parts(
    session: Session, rows: Dataset, tree: Filter, wanted: AggregateQuery
) -> tuple[AggregateQuery, PartialAggregates]:
    """Return an aggregate query with the bounds of its periods filled in, and its partial answer."""
    session.budgets.spend("queries", 1 if wanted.spans() is None else 2)
    journal, left = session.journal, session.journal.excluded_keys(rows)
    company, fields = RelatedRows(journal.written), tuple(fields_of(tree))

    def query_aggregate(connection: Connection) -> tuple[AggregateQuery, PartialAggregates] | None:
        """Return the question and its partial answers, of committed rows and of the run's own."""
        reader = Reader(connection, session.scope, journal.written, session.indexed_paths)
        if wanted.spans() is None and not fields and _knows_indexes(session, rows, tree):
            prepared.last(connection)
        transform = _row_transform(reader, company, journal.written(rows).values(), fields)

        def merged(asked: AggregateQuery) -> PartialAggregates:
            """Return the partial answers of committed rows and of the run's own together."""
            committed = reader.aggregate(rows, tree, asked, without=left)
            return aggregate.merge_aggregates(asked, committed, journal.aggregate_rows(rows, tree, asked, transform))

        spans = wanted.spans()
        whole = wanted if spans is None else wanted.with_periods(merged(spans))
        answer = whole, merged(whole)
        return answer if reader.is_current() else None

    while (answer := await session.read(query_aggregate, rows)) is None:
        pass
    return answer


async def committed_row(session: Session, rows: Dataset, key: Any) -> Row | None:
    """Read one committed row; it counts as a query."""
    session.budgets.spend("queries")

    def query_row(connection: Connection) -> Row | None:
        """Return the committed row, None if there is none."""
        prepared.last(connection)
        return Reader(connection, session.scope).rows(rows, [key]).get(key)

    return await session.read(query_row, rows)


def read_key(rows: Dataset, given: Any) -> Any:
    """Return the canonical key for an id from a script.

    Raises:
        CallRefused: ``bad_request``: another type.
    """
    key: ColumnField = rows.key
    return kinds.read(key.kind, given, f"the id of {rows.name}")


HANDLERS = {"db.find": find, "db.get": get, "db.count": count, "db.aggregate": aggregates}
