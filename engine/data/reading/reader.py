"""Reads one tenant's committed rows on a connection. Synchronous; without the journal's changes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as Many
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DataError, OperationalError

from lodger.engine.core import strict_json
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.filtering.aggregate import (
    MAX_GROUPS,
    OUT_OF_RANGE,
    AggregateQuery,
    Measure,
    PartialAggregate,
    PartialAggregates,
)
from lodger.engine.data.filtering.evaluator import Row, matches
from lodger.engine.data.filtering.parsing import Compare, Filter, In, Op, Order, inner_of
from lodger.engine.data.filtering.periods import PeriodField
from lodger.engine.data.filtering.sql_compiler import Compiler
from lodger.engine.data.reading import document_index
from lodger.engine.data.sets.dataset import Collection, Dataset, TableDataset
from lodger.engine.data.sets.scope import Scope
from lodger.engine.data.values.fields import (
    BOOLEAN,
    NULL,
    NUMBER,
    OTHER,
    STRING,
    TIME,
    ColumnField,
    OwnField,
    PathField,
    RelatedField,
)
from lodger.engine.data.values.kinds import Kind
from lodger.engine.data.values.stored import as_decimal, canonical, column_of, document_row
from lodger.engine.store.drivers import Driver, driver_of
from lodger.engine.store.drivers.expressions import Bytewise
from lodger.engine.store.drivers.features import QueryRefusal
from lodger.engine.store.drivers.prepared import Answer
from lodger.engine.store.schema.script_data import documents

_CHUNK = 400
#: What one question reads at once, bytes: a page of large rows ends early instead of filling the node's memory. A page that a script is
#: given holds less than half of it.
MAX_BYTES = 2 * 1024 * 1024
#: A text column that may hold more letters than this can make a row large.
LONG = 1000
#: So many rows are read however large they are: one to be given, and one to see that there are more.
MIN_ROWS = 2
#: Classes of a document's values that have extremes.
_RANKS = (BOOLEAN, NUMBER, STRING, TIME)
ExcludedKeys = Many[Any]
UNREADABLE = "a row has a date that scripts cannot represent: infinity, or outside the years 1 to 9999; exclude such rows with a filter"


#: Code and message of the refusal for a script.
_REFUSALS = {
    QueryRefusal.OUT_OF_RANGE: ("out_of_range", OUT_OF_RANGE),
    QueryRefusal.UNREADABLE: ("unreadable", UNREADABLE),
    QueryRefusal.TOO_COMPLEX: ("bad_request", "the query is too complex for the database; split it"),
    QueryRefusal.INCOMPARABLE: ("bad_request", "the query has a value that the database cannot compare"),
}


class Reader:
    """Queries on one tenant's rows.

    Args:
        connection: the caller's, in the caller's transaction.
        scope: binds every statement to the tenant.
        touched: returns rows of a dataset that the journal has changed, None for a deleted one; called for datasets that a filter
            reaches through a foreign key.
        paths: indexed paths of collections, as far as they are known; see :meth:`is_current`.
    """

    def __init__(
        self,
        connection: sa.Connection,
        scope: Scope,
        touched: Callable[[TableDataset], Mapping[Any, Row | None]] = lambda _rows: {},
        paths: dict[str, list[str]] | None = None,
    ) -> None:
        self.connection = connection
        self.scope = scope
        self.driver = driver_of(connection)
        self.compiler = Compiler(self.driver, self._related)
        self._touched = touched
        self._paths = {} if paths is None else paths
        self._asked: dict[str, Answer] = {}

    def _ask(
        self, statement: sa.Select[Any], weighed: Sequence[int], max_bytes: int | None = None
    ) -> tuple[list[Any], bool]:
        """Run a query; return its rows up to a number of bytes, and whether there are more.

        Args:
            weighed: positions of the columns that can be large; without any, all rows are returned.
        """
        try:
            if not weighed:
                return list(self.connection.execute(statement)), False
            most = MAX_BYTES if max_bytes is None else max_bytes
            return self.driver.rows_up_to(self.connection, statement, weighed, most, MIN_ROWS)
        except (OperationalError, DataError) as error:
            refusal = self.driver.query_refusal(error)
            if refusal is None:
                raise
            raise CallRefused(*_REFUSALS[refusal]) from error

    def page(
        self,
        rows: Dataset,
        tree: Filter,
        order: Sequence[Order],
        limit: int,
        *,
        after: Sequence[Any] | None = None,
        without: ExcludedKeys = (),
        max_bytes: int | None = None,
    ) -> tuple[list[Row], bool]:
        """Return the first rows in order that match the filter, come after a position, and have none of these keys.

        Args:
            max_bytes: maximum size of the rows; None for that of a page. Two rows are returned whatever their size.

        Returns:
            The rows, and whether their size made them fewer than ``limit``.
        """
        statement = self.scope.select(rows, *_columns(rows, self.driver)).where(*self._where(rows, tree))
        if after is not None:
            statement = statement.where(self.compiler.after(order, after))
        statement = self._without(statement, rows, without)
        statement = statement.order_by(*self.compiler.terms(order)).limit(limit)
        found, cut = self._ask(statement, _wide(rows), max_bytes)
        return [_row(rows, raw) for raw in found], cut

    def rows(
        self, rows: Dataset, keys: Iterable[Any], *, lock: bool = False, max_bytes: int | None = None
    ) -> dict[Any, Row]:
        """Return rows by their keys.

        Args:
            lock: lock the rows until the transaction ends.
            max_bytes: maximum size of the rows together.

        Raises:
            CallRefused: ``too_large``.
        """
        found: dict[Any, Row] = {}
        wanted = list(keys)
        for start in range(0, len(wanted), _CHUNK):
            these = self.compiler.among(rows.key, wanted[start : start + _CHUNK])
            statement = self.scope.select(rows, *_columns(rows, self.driver)).where(these)
            if lock:
                # In the order of keys, to avoid deadlocks; not on SQLite, where one writer locks the whole file.
                statement = statement.order_by(column_of(rows.key, self.driver)).with_for_update()
            weighed = () if max_bytes is None else _wide(rows)
            some, cut = self._ask(statement, weighed, max_bytes)
            if cut:
                raise CallRefused("too_large", f"these rows of {rows.name} are too large for one answer; ask for fewer")
            for raw in some:
                row = _row(rows, raw)
                found[row[rows.key.name]] = row
        return found

    def aggregate(
        self, rows: Dataset, tree: Filter, wanted: AggregateQuery, *, without: ExcludedKeys = ()
    ) -> PartialAggregates:
        """Aggregate the committed rows.

        Raises:
            CallRefused: ``too_many_groups``.
        """
        groups = [self._group(item) for item in wanted.group]
        flat = [part for parts in groups for part in parts]
        columns: list[sa.ColumnElement[Any]] = [sa.func.count()]
        spans: list[int] = []
        weighed: list[int] = []
        for measure, item in wanted.measures:
            parts = self._measure(measure, item)
            if flat and measure in (Measure.MIN, Measure.MAX) and _is_large(item):
                weighed += range(len(flat) + len(columns), len(flat) + len(columns) + len(parts))
            spans.append(len(parts))
            columns.extend(parts)
        labelled = [column.label(f"v{n}") for n, column in enumerate([*flat, *columns])]
        statement = self.scope.select(rows, *labelled).where(*self._where(rows, tree))
        statement = self._without(statement, rows, without)
        if flat:
            statement = statement.group_by(*labelled[: len(flat)]).limit(MAX_GROUPS + 1)
        if any(_is_large(item) for item in wanted.group):
            weighed += range(len(flat))
        found, cut = self._ask(statement, weighed)
        if cut:
            raise CallRefused("too_large", "the values of groupBy, min or max are too large; group by less")
        if len(found) > MAX_GROUPS:
            raise CallRefused(
                "too_many_groups", f"the query has more than {MAX_GROUPS} groups; filter more or group by less"
            )
        result: PartialAggregates = {}
        for raw in found:
            if not raw[len(flat)] and not flat:
                continue
            key, part = _part(wanted, raw, [len(parts) for parts in groups], spans)
            result[key] = part
        return result

    def _where(self, rows: Dataset, tree: Filter) -> list[sa.ColumnElement[bool]]:
        """Return the conditions of a filter: conditions on indexes that narrow it, then its own."""
        narrowed: list[sa.ColumnElement[bool]] = []
        if isinstance(rows, Collection) and document_index.asks_paths(tree):
            indexed = self._indexed_paths(rows.name)
            narrowed = document_index.narrowed(self.scope, rows, tree, indexed)
        return [*narrowed, self.compiler.where(tree)]

    def _indexed_paths(self, name: str) -> list[str]:
        """Return the paths of complete indexes; known ones are taken, and asked for again in the same snapshot."""
        asked = document_index.ask_paths(self.connection, self.scope, name, complete=True)
        known = self._paths.get(name)
        if known is None:
            known = self._paths[name] = [row[0] for row in asked()]
        else:
            self._asked[name] = asked
        return known

    def is_current(self) -> bool:
        """Whether the known index paths are those of this snapshot; if not, they are replaced, and the query must be repeated."""
        is_current = True
        for name, asked in self._asked.items():
            found = [row[0] for row in asked()]
            is_current = is_current and sorted(found) == sorted(self._paths[name])
            self._paths[name] = found
        return is_current

    def _related(self, tree: Compare | In) -> sa.ColumnElement[bool]:
        """Compile a condition on a related row; a row without a related one has nulls there."""
        field = tree.field
        assert isinstance(field, RelatedField)
        target, link = field.target, field.link.column
        inner = inner_of(tree)
        known = self._touched(target)
        fits = [key for key, row in known.items() if matches(inner, row or {})]
        there = (
            self.scope.select(target, sa.literal(1))
            .where(_join_condition(link, target.key.column))
            .correlate_except(target.table)
        )
        elsewhere = sa.true() if not known else sa.not_(self._among(field, list(known)))
        found = sa.and_(elsewhere, there.where(self.compiler.where(inner)).exists())
        ways: list[sa.ColumnElement[bool]] = [sa.and_(link.is_not(None), found)]
        if fits:
            ways.append(self._among(field, fits))
        if matches(inner, {}):
            ways.append(sa.or_(link.is_(None), sa.and_(elsewhere, sa.not_(there.exists()))))
        return sa.or_(sa.false(), *ways)

    def _among(self, field: RelatedField, keys: list[Any]) -> sa.ColumnElement[bool]:
        """Whether a foreign key is one of these; false when it is null."""
        return sa.and_(field.link.column.is_not(None), self.compiler.among(field.link, keys))

    def _without(self, statement: Any, rows: Dataset, keys: ExcludedKeys) -> Any:
        """Return a statement that excludes the rows of a dataset with these keys."""
        if not keys:
            return statement
        return statement.where(
            column_of(rows.key, self.driver).not_in([self.compiler.bound(rows.key, key) for key in keys])
        )

    def _group(self, item: OwnField | PeriodField) -> list[sa.ColumnElement[Any]]:
        """Return the SQL values that rows are grouped by."""
        if isinstance(item, PeriodField):
            return [self._period(item)]
        if isinstance(item, ColumnField):
            return self.compiler.parts(item)
        place = self.compiler.place(item)
        return [sa.func.nullif(place.rank(), NULL), *place.values()]

    def _period(self, item: PeriodField) -> sa.ColumnElement[Any]:
        """Return the number of a period, found by halves: a row takes few comparisons, however many periods there are."""

        def is_before(start: Any) -> sa.ColumnElement[bool]:
            """Return the condition that the field is before the start of a period."""
            return self.compiler.compared(item.field, Op.LT, start)

        def number_between(low: int, high: int) -> sa.ColumnElement[Any]:
            """Return the number of the field's period, found by halving between ``low`` and ``high``."""
            if high - low <= 1:
                return sa.literal_column(str(low), sa.Integer)
            middle = (low + high) // 2
            return sa.case(
                (is_before(item.starts[middle]), number_between(low, middle)), else_=number_between(middle, high)
            )

        if not item.starts:
            return sa.cast(sa.null(), sa.Integer)
        there = self.compiler.compared(item.field, Op.GTE, item.starts[0])
        return sa.case((there, number_between(0, len(item.starts))), else_=sa.null())

    def _measure(self, measure: Measure, item: OwnField) -> list[sa.ColumnElement[Any]]:
        """Return the SQL columns that compute a measure, such as a sum with its count."""
        if isinstance(item, PathField):
            place = self.compiler.place(item)
            numbers = place.numbers()
            if measure in (Measure.SUM, Measure.AVG):
                strange = place.rank().not_in((NULL, NUMBER))
                return [sa.func.sum(sa.case((strange, 1), else_=0)), sa.func.sum(numbers), sa.func.count(numbers)]
            end = sa.func.min if measure is Measure.MIN else sa.func.max
            held = [place.held(rank) for rank in _RANKS]
            neither = place.rank() == OTHER
            return [
                *(end(sa.case((there, value), else_=sa.null())) for there, value in held),
                end(sa.case((neither, 1), else_=sa.null())),
            ]
        column = column_of(item, self.driver)
        if measure in (Measure.MIN, Measure.MAX):
            if item.kind in (Kind.UUID, Kind.BOOL):
                column = self.driver.extreme(column, is_uuid=item.kind is Kind.UUID)
            return [sa.func.min(column) if measure is Measure.MIN else sa.func.max(column)]
        scale = item.scale if item.kind is Kind.DECIMAL else None
        if item.kind is Kind.FLOAT or (item.kind is Kind.DECIMAL and scale is None):
            return [sa.func.sum(column), sa.func.count(column)]
        return self.driver.exact_sum(column, scale)


def _join_condition(link: sa.Column[Any], key: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Return the join condition of a foreign key; texts must be equal byte by byte, whatever the collation."""
    if isinstance(link.type, sa.String):
        return sa.and_(link == key, Bytewise(link) == Bytewise(key))
    alike: sa.ColumnElement[bool] = link == key
    return alike


def _wide(rows: Dataset) -> list[int]:
    """Return the positions of the columns of :func:`_columns` that can make a row large."""
    if isinstance(rows, Collection):
        return [1]
    return [place for place, item in enumerate(rows.shown) if is_wide(item.column)]


def is_wide(column: sa.Column[Any]) -> bool:
    """Whether one value of a column can be large."""
    if isinstance(column.type, sa.String):
        return column.type.length is None or column.type.length > LONG
    return isinstance(column.type, sa.JSON | sa.LargeBinary)


def _columns(rows: Dataset, driver: Driver) -> list[sa.ColumnElement[Any]]:
    """Return the columns that a query of a dataset selects."""
    if isinstance(rows, Collection):
        return [documents.c.id, documents.c.body]
    return [column_of(item, driver).label(f"c{n}") for n, item in enumerate(rows.shown)]


def _row(rows: Dataset, raw: Any) -> Row:
    """Return a row or a document from its selected columns."""
    if isinstance(rows, TableDataset):
        return {item.name: canonical(item, value) for item, value in zip(rows.shown, raw, strict=False)}
    return document_row(raw[0], raw[1])


def _is_whole(value: Any) -> bool:
    """Whether a value is a float that stands for a whole number which JavaScript holds exactly."""
    return isinstance(value, float) and value.is_integer() and abs(value) <= strict_json.SAFE_INTEGER


def _part(
    wanted: AggregateQuery, raw: Any, widths: list[int], spans: list[int]
) -> tuple[tuple[Any, ...], PartialAggregate]:
    """Return key and values of one group from a row of the query. ``widths``: cells of each group term; ``spans``: cells of each
    measure."""
    key: list[Any] = []
    at = 0
    for index, item in enumerate(wanted.group):
        if isinstance(item, PeriodField):
            key.append(raw[at])
            at += 1
        elif isinstance(item, ColumnField):
            key.append(canonical(item, raw[at]))
            at += 1
        else:
            rank = raw[at] if raw[at] is not None else NULL
            inner = next((cell for cell in raw[at + 1 : at + widths[index]] if cell is not None), 0)
            key.append((rank, 0 if rank == NULL else int(inner) if _is_whole(inner) else inner))
            at += widths[index]
    part = PartialAggregate(count=raw[at])
    at += 1
    for index, ((measure, item), span) in enumerate(zip(wanted.measures, spans, strict=True)):
        cells = raw[at : at + span]
        at += span
        if not isinstance(item, ColumnField):
            _of_path(part, index, measure, cells)
        elif measure in (Measure.MIN, Measure.MAX):
            if cells[0] is not None:
                part.ends[index] = canonical(item, cells[0])
        elif cells[-1]:
            part.sums[index] = (_sum(item, cells), cells[-1])
    return tuple(key), part


def _of_path(part: PartialAggregate, index: int, measure: Measure, cells: Sequence[Any]) -> None:
    """Add the aggregates of one measure on a document path, from the cells of a query's row, to a group."""
    if measure in (Measure.MIN, Measure.MAX):
        held = zip((*_RANKS, OTHER), cells, strict=True)
        ends = {rank: float(cell) if rank == NUMBER else cell for rank, cell in held if cell is not None}
        if ends:
            part.ends[index] = ends
        return
    if cells[0]:
        part.others.add(index)
    if cells[2]:
        part.sums[index] = (float(cells[1]), cells[2])


def _is_large(item: OwnField | PeriodField) -> bool:
    """Whether values of a field may be large: document paths, long texts, JSON and binary columns."""
    if isinstance(item, PeriodField):
        return False
    return not isinstance(item, ColumnField) or is_wide(item.column)


def _sum(item: ColumnField, cells: Sequence[Any]) -> Any:
    """Return a sum from its columns: some databases return it in halves."""
    if item.kind is Kind.FLOAT:
        return float(cells[0])
    if len(cells) == 3:
        whole = (int(cells[0]) << 32) + int(cells[1])
        return as_decimal(whole, None).scaleb(-(item.scale or 0)) if item.kind is Kind.DECIMAL else whole
    return as_decimal(cells[0], None) if item.kind is Kind.DECIMAL else int(cells[0])
