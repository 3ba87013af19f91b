"""Grouping of instants by the days, weeks or months of a time zone.

A period begins at local midnight. The groups of a query are the periods between its first and last instant, so that databases only compare
instants: none of them computes in a time zone.
"""

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.engine.data.filtering.evaluator import Row, value_of
from lodger.engine.data.filtering.parsing import OwnLookup
from lodger.engine.data.values import kinds
from lodger.engine.data.values.fields import TIME, ColumnField, OwnField, classed
from lodger.engine.data.values.kinds import Kind
from lodger.engine.recurrence.calendar.zones import python_zone
from lodger.engine.recurrence.rule_errors import RuleInvalid

MAX_PERIODS = 1000
UNITS = ("day", "week", "month")
_USAGE = 'groupBy takes names, and objects such as { day: "created", tz: "Europe/Berlin" } with day, week or month'


@dataclass(frozen=True, slots=True)
class PeriodField:
    """A term of groupBy: the period of a field's instant.

    Attributes:
        field: holds instants; other values of documents belong to the group null.
        unit: day, week (from Monday) or month.
        tz: IANA name.
        days: first local day of each period, ascending; empty until :func:`between`.
        starts: the comparable value (of a column or a path) at which each period begins.
    """

    field: OwnField
    unit: str
    tz: str
    days: tuple[dt.date, ...] = ()
    starts: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """The field's name, under which the group has its period."""
        return self.field.name

    def index(self, row: Row) -> int | None:
        """Return the number of a row's period, None if it has no instant."""
        value = value_of(self.field, row)
        if value is None or (not isinstance(self.field, ColumnField) and value[0] != TIME):
            return None
        return bisect_right(self.starts, value) - 1


def read_period(value: dict[str, Any], lookup: OwnLookup) -> PeriodField:
    """Parse a term such as ``{day: "created", tz: "Europe/Berlin"}``; the zone is UTC if it is left out.

    Raises:
        CallRefused: ``bad_request``.
    """
    unit = next((name for name in UNITS if name in value), None)
    tz = value.get("tz", "UTC")
    if unit is None or not isinstance(value[unit], str) or not isinstance(tz, str) or value.keys() - {unit, "tz"}:
        raise bad_request(_USAGE)
    try:
        python_zone(tz)
    except RuleInvalid as unknown:
        raise bad_request(f"{unknown}; {unknown.fix}") from None
    field = lookup(value[unit])
    if isinstance(field, ColumnField) and field.kind is not Kind.INSTANT:
        raise bad_request(f"{field.name} is {field.kind}; {unit} needs instants")
    return PeriodField(field, unit, tz)


def between(period: PeriodField, low: Any, high: Any) -> PeriodField:
    """Return the term with its periods filled in, from that of the first instant to that of the last; unchanged without instants.

    Raises:
        CallRefused: ``too_many_groups``.
    """
    if not isinstance(period.field, ColumnField):
        low, high = (_instant(end) for end in (low, high))
    if low is None or high is None:
        return period
    zone = python_zone(period.tz)
    last = _local_day(high, zone)
    days: list[dt.date] = []
    for day in _days(period.unit, _local_day(low, zone)):
        if day > last:
            break
        days.append(day)
        if len(days) > MAX_PERIODS:
            raise CallRefused(
                "too_many_groups",
                f"the rows are from more than {MAX_PERIODS} {period.unit}s; filter more or group by a longer period",
            )
    starts = [_start(period.field, day, zone) for day in days]
    return replace(period, days=tuple(days), starts=tuple(starts))


def _local_day(instant: dt.datetime, zone: dt.tzinfo) -> dt.date:
    try:
        return instant.astimezone(zone).date()
    except OverflowError:  # in the zone, it is beyond the years 1 to 9999
        return dt.date.min if instant.year == 1 else dt.date.max


def _days(unit: str, first: dt.date) -> Iterator[dt.date]:
    """Yield the first days of successive days, weeks or months, from the one that holds ``first``."""
    if unit == "month":
        first = first.replace(day=1)
    elif unit == "week":
        first -= dt.timedelta(days=min(first.weekday(), (first - dt.date.min).days))
    while True:
        yield first
        try:
            first += dt.timedelta(days={"day": 1, "week": 7}.get(unit, 31))
        except OverflowError:
            return
        if unit == "month":
            first = first.replace(day=1)


def _start(field: OwnField, day: dt.date, zone: dt.tzinfo) -> Any:
    """Return the start of a day in a zone, in the kind of a field."""
    try:
        start = dt.datetime.combine(day, dt.time(), zone).astimezone(dt.UTC)
    except OverflowError:
        start = dt.datetime.min.replace(tzinfo=dt.UTC)
    return start if isinstance(field, ColumnField) else classed(kinds.show(Kind.INSTANT, start))


def _instant(ends: dict[int, Any] | None) -> Any:
    """Return the instant among the extreme values of a path."""
    text = (ends or {}).get(TIME)
    return None if text is None else dt.datetime.fromisoformat(text)
