"""Counts, sums, averages and extremes over a dataset: the query, partial aggregates, and merging them.

SQL aggregates the rows that the journal has not touched, Python those it has; :func:`merge_aggregates` adds them up.
Integers and decimals are exact. Nulls are not counted; an empty sum is 0. Values at a path of documents may have several
types: an aggregate without a meaning over them is refused, never reduced to some of them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from enum import StrEnum
from functools import cmp_to_key, partial
from typing import Any

from lodger.engine.core import strict_json
from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.engine.data.filtering.evaluator import Row, placed, value_of
from lodger.engine.data.filtering.parsing import Order, OwnLookup
from lodger.engine.data.filtering.periods import PeriodField, between, read_period
from lodger.engine.data.values import kinds
from lodger.engine.data.values.fields import BOOLEAN, NULL, NUMBER, OTHER, TIME, ColumnField, OwnField
from lodger.engine.data.values.kinds import Kind
from lodger.engine.data.values.stored import at_scale

MAX_MEASURES = 20
MAX_GROUP_FIELDS = 4
MAX_GROUPS = 1000
OUT_OF_RANGE = "a sum exceeds the range of numbers; aggregate fewer rows"


class Measure(StrEnum):
    """An aggregate function of one field."""

    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class AggregateQuery:
    """The aggregate query of a script: measures of fields, and the fields and periods by which rows are grouped."""

    measures: tuple[tuple[Measure, OwnField], ...] = ()
    group: tuple[OwnField | PeriodField, ...] = ()

    def spans(self) -> "AggregateQuery | None":
        """Return the query for the first and last instant of each period term, None if there is none."""
        fields = [term.field for term in self.group if isinstance(term, PeriodField)]
        ends = tuple((measure, field) for field in fields for measure in (Measure.MIN, Measure.MAX))
        return AggregateQuery(ends) if ends else None

    def with_periods(self, spans: "PartialAggregates") -> "AggregateQuery":
        """Return the query with the periods between those instants."""
        ends = spans[()].ends if spans else {}
        numbers = iter(range(0, 2 * MAX_GROUP_FIELDS, 2))
        group = [
            between(term, ends.get(at := next(numbers)), ends.get(at + 1)) if isinstance(term, PeriodField) else term
            for term in self.group
        ]
        return AggregateQuery(self.measures, tuple(group))


@dataclass(slots=True)
class PartialAggregate:
    """The aggregate of some rows of one group.

    Attributes:
        sums: (sum, how many) per measure.
        ends: extreme per measure; of a path, extremes by the class of the values.
        others: positions of sums and averages over a path that holds other values than numbers.
    """

    count: int = 0
    sums: dict[int, tuple[Any, int]] = field(default_factory=dict)
    ends: dict[int, Any] = field(default_factory=dict)
    others: set[int] = field(default_factory=set)


PartialAggregates = dict[tuple[Any, ...], PartialAggregate]


def read_wanted(measures: dict[str, Any], group: Any, lookup: OwnLookup) -> AggregateQuery:
    """Parse an aggregate query such as ``{sum: ["total"], max: "modified"}`` and ``["state"]``.

    Raises:
        CallRefused: ``bad_request``.
    """
    asked: list[tuple[Measure, OwnField]] = []
    for name, value in measures.items():
        for column in value if isinstance(value, list) else [value]:
            if not isinstance(column, str):
                raise bad_request(f"'{name}' takes the name of a column, or a list of names")
            found = lookup(column)
            if isinstance(found, ColumnField):
                _measurable(Measure(name), found)
            asked.append((Measure(name), found))
    groups = [] if group is None else group if isinstance(group, list) else [group]
    if len(asked) > MAX_MEASURES or len(groups) > MAX_GROUP_FIELDS:
        raise bad_request(f"an aggregate has at most {MAX_MEASURES} measures and {MAX_GROUP_FIELDS} fields in groupBy")
    fields: list[OwnField | PeriodField] = []
    for column in groups:
        if isinstance(column, dict):
            fields.append(read_period(column, lookup))
            continue
        if not isinstance(column, str):
            raise bad_request("groupBy takes the name of a column, or a list of names")
        found = lookup(column)
        if isinstance(found, ColumnField) and found.kind is Kind.JSON:
            raise bad_request(f"{found.name} is JSON, which groupBy does not support")
        fields.append(found)
    names = [each.name for each in fields]
    for name in names:
        if names.count(name) > 1:
            raise bad_request(
                f"groupBy has {name} twice, and a group has one value of each name: ask once for each, or store the other in a field"
            )
    return AggregateQuery(tuple(asked), tuple(fields))


def _measurable(measure: Measure, column: ColumnField) -> None:
    """Raise CallRefused if a column's kind does not have this measure, such as the sum of texts."""
    if measure in (Measure.SUM, Measure.AVG) and column.kind not in kinds.NUMERIC:
        raise bad_request(f"{measure} needs a numeric column; {column.name} is {column.kind}")
    if column.kind not in kinds.ORDERED:
        raise bad_request(f"{column.name} is {column.kind}, which has no order")


def group_key(group: Iterable[OwnField | PeriodField], row: Row) -> tuple[Any, ...]:
    """Return the group that a row belongs to."""
    return tuple(item.index(row) if isinstance(item, PeriodField) else value_of(item, row) for item in group)


def aggregate_rows(wanted: AggregateQuery, rows: Iterable[Row]) -> PartialAggregates:
    """Aggregate rows held in memory."""
    parts: PartialAggregates = {}
    for row in rows:
        part = parts.setdefault(group_key(wanted.group, row), PartialAggregate())
        part.count += 1
        for index, (measure, item) in enumerate(wanted.measures):
            value = value_of(item, row)
            if not isinstance(item, ColumnField):
                rank, value = value
                if rank == NULL:
                    continue
                if measure in (Measure.MIN, Measure.MAX):
                    value = {rank: float(value) if rank == NUMBER else value}
                elif rank == NUMBER:
                    value = float(value)
                else:
                    part.others.add(index)
                    continue
            if value is None:
                continue
            if measure in (Measure.SUM, Measure.AVG):
                total, count = part.sums.get(index, (0, 0))
                part.sums[index] = (kinds.plus(total, value), count + 1)
            else:
                part.ends[index] = _end(measure, part.ends.get(index), value)
    return parts


def merge_aggregates(wanted: AggregateQuery, left: PartialAggregates, right: PartialAggregates) -> PartialAggregates:
    """Merge the aggregates of two disjoint sets of rows."""
    made: PartialAggregates = dict(left)
    for key, part in right.items():
        other = made.get(key)
        if other is None:
            made[key] = part
            continue
        whole = PartialAggregate(
            other.count + part.count, dict(other.sums), dict(other.ends), other.others | part.others
        )
        for index, (total, count) in part.sums.items():
            held = whole.sums.get(index, (0, 0))
            whole.sums[index] = (kinds.plus(held[0], total), held[1] + count)
        for index, value in part.ends.items():
            whole.ends[index] = _end(wanted.measures[index][0], whole.ends.get(index), value)
        made[key] = whole
    return made


def _end(measure: Measure, held: Any, value: Any) -> Any:
    """Return the lower of two values for MIN, the higher for MAX; None counts as absent."""
    if held is None:
        return value
    if value is None:
        return held
    if isinstance(held, dict):
        return {rank: _end(measure, held.get(rank), value.get(rank)) for rank in held | value}
    return min(held, value) if measure is Measure.MIN else max(held, value)


def shown(wanted: AggregateQuery, parts: PartialAggregates) -> list[dict[str, Any]]:
    """Return the answer in wire form, one object per group, ordered by the group's values; without groups exactly one."""
    if not wanted.group and not parts:
        parts = {(): PartialAggregate()}
    order = tuple(Order(item.field if isinstance(item, PeriodField) else item) for item in wanted.group)
    keys = sorted(parts, key=cmp_to_key(partial(placed, order)))
    return [_shown(wanted, key, parts[key]) for key in keys]


def _shown(wanted: AggregateQuery, key: tuple[Any, ...], part: PartialAggregate) -> dict[str, Any]:
    """Return one group of an aggregate as scripts see it."""
    row: dict[str, Any] = {"count": part.count}
    if wanted.group:
        row["group"] = {item.name: _group_shown(item, value) for item, value in zip(wanted.group, key, strict=True)}
    for index, (measure, item) in enumerate(wanted.measures):
        kind = item.kind if isinstance(item, ColumnField) else Kind.FLOAT
        if measure in (Measure.MIN, Measure.MAX):
            value = part.ends.get(index)
            if value is not None and not isinstance(item, ColumnField):
                row.setdefault(measure.value, {})[item.name] = _group_shown(item, _one_class(measure, item, value))
                continue
        elif index in part.others:
            raise CallRefused(
                "not_numbers", f"{measure} needs numbers, but {item.name} has other values; exclude them with a filter"
            )
        else:
            total, count = part.sums.get(index, (Decimal(0) if kind is Kind.DECIMAL else 0, 0))
            value = total if measure is Measure.SUM else _average(kind, item, total, count)
            if isinstance(value, float) and not math.isfinite(value):
                raise CallRefused("out_of_range", OUT_OF_RANGE)
            if measure is Measure.AVG and kind in (Kind.INT, Kind.BIGINT):
                kind = Kind.FLOAT
        row.setdefault(measure.value, {})[item.name] = kinds.show(kind, value)
    return row


def _one_class(measure: Measure, item: OwnField, ends: dict[int, Any]) -> tuple[int, Any]:
    """Return the extreme value of a document path as (type rank, value); raises CallRefused if values of several types are there."""
    if len(ends) > 1 or OTHER in ends:
        held = "lists or objects" if OTHER in ends else "values of several types"
        raise CallRefused(
            "not_comparable",
            f"{measure} needs values of one type with an order, but {item.name} has {held}; filter them by type",
        )
    ((rank, value),) = ends.items()
    return rank, value


def _average(kind: Kind, item: OwnField, total: Any, count: int) -> Any:
    """Return an average in the kind of its column; None of no values."""
    if not count:
        return None
    if kind is Kind.DECIMAL:
        scale = (item.scale if isinstance(item, ColumnField) else None) or 0
        return at_scale(kinds.EXACT.divide(total, count), scale + 6, ROUND_HALF_EVEN)
    return total / count


def _group_shown(item: OwnField | PeriodField, value: Any) -> Any:
    """Return the value of a group as scripts see it."""
    if isinstance(item, PeriodField):
        return None if value is None else item.days[value].isoformat()
    if isinstance(item, ColumnField):
        return kinds.show(item.kind, value)
    rank, inner = value
    if rank == NULL:
        return None
    if rank == OTHER:
        raise CallRefused(
            "not_comparable",
            f"groupBy needs single values, but {item.name} has lists or objects; exclude them, or use distinct",
        )
    if rank == BOOLEAN:
        return bool(inner)
    return {strict_json.INSTANT: inner} if rank == TIME else inner
