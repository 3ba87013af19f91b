"""The filter language of lists: ``state:failed script:night* error:"timed out" since:24h sort:-due``.

Terms are joined by *and*: ``field:value``, ``field:one,other`` for either, ``-field:value`` for its opposite, and words without a field for
a text that is searched. A value of a name matches the whole name, with ``*`` for any characters; letters of either case are alike.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, func, literal, not_, or_, tuple_

from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import InputError
from lodger.engine.recurrence.duration import parse_duration
from lodger.engine.recurrence.rule_errors import RuleInvalid

#: Longest filter, characters.
MAX_CHARACTERS = 2000
_VALUE = r'"(?:[^"\\]|\\.)*"|[^\s",]+'
_TERM = re.compile(rf"(?P<minus>-?)(?:(?P<field>[a-z_]+):)?(?P<values>(?:{_VALUE})(?:,(?:{_VALUE}))*)(?=\s|$)")
_EMPTY = re.compile(r"[a-z_]+:")
_ESCAPE = "\\"

#: Returns the condition of one value, at an instant.
Condition = Callable[[str, int], ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class Language:
    """Fields of one list.

    Attributes:
        fields: conditions by name of the field.
        words: condition of a word without a field.
        sorts: orders by name, each a column without NULL; the first one is used without ``sort:``.
        tie: columns that make each order total.
        falls: whether the first order is from high to low.
    """

    fields: Mapping[str, Condition]
    words: Condition
    sorts: Mapping[str, ColumnElement[Any]]
    tie: tuple[ColumnElement[Any], ...]
    falls: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter that was read: conditions, and an order; by default every row, from high to low.

    Attributes:
        text: the text that it was read from.
        positive: values and condition of the last term of each field without a minus.
    """

    keys: tuple[ColumnElement[Any], ...]
    conditions: tuple[ColumnElement[bool], ...] = ()
    falls: bool = True
    text: str = ""
    positive: Mapping[str, tuple[list[str], ColumnElement[bool]]] = field(default_factory=dict)

    def apply(self, statement: Select[Any], place: Sequence[Any] | None = None) -> Select[Any]:
        """Return a statement with the conditions and the order, beginning after a place."""
        statement = statement.where(*self.conditions).order_by(
            *(each.desc() if self.falls else each for each in self.keys)
        )
        if place is None:
            return statement
        # With the columns' types: PostgreSQL compares no UUID with a text.
        values = (literal(value, column.type) for value, column in zip(place, self.keys, strict=True))
        here, there = tuple_(*self.keys), tuple_(*values)
        return statement.where(here < there if self.falls else here > there)


def with_fields(text: str | None, **fields: str | datetime | None) -> str:
    """Return a filter that also has these fields; None is any value."""
    terms = [f"{name}:{json.dumps(str(value))}" for name, value in fields.items() if value is not None]
    return " ".join(filter(None, (text, *terms)))


def read(language: Language, text: str | None, now_us: int) -> Filter:
    """Return the filter that a text says.

    Raises:
        InputError: filter_invalid, and the errors of its fields' values.
    """
    text = text or ""
    if len(text) > MAX_CHARACTERS:
        raise InputError("filter_invalid.long", maximum=MAX_CHARACTERS)
    conditions: list[ColumnElement[bool]] = []
    positive: dict[str, tuple[list[str], ColumnElement[bool]]] = {}
    names = list(language.sorts)
    sort, falls = names[0], language.falls
    left = text.lstrip()
    while left:
        term = _TERM.match(left)
        if term is None:
            raise InputError("filter_invalid", at=len(text) - len(left) + 1, rest=left[:40])
        left = left[term.end() :].lstrip()
        values = [_unquoted(each) for each in re.findall(_VALUE, term["values"])]
        name = term["field"]
        if name is None and _EMPTY.fullmatch(term["values"]):
            raise InputError("filter_invalid.empty", field=term["values"])
        _require_storable(values)
        if name == "sort":
            sort, falls = values[0].removeprefix("-"), values[0].startswith("-")
            if term["minus"] or len(values) > 1 or sort not in names:
                raise InputError("filter_invalid.sort", word=term["values"], words=names)
            continue
        if name is not None and name not in language.fields:
            raise InputError("filter_invalid.field", field=name, fields=[*language.fields, "sort"])
        condition = language.words if name is None else language.fields[name]
        either = or_(*(condition(value, now_us) for value in values))
        conditions.append(not_(func.coalesce(either, False)) if term["minus"] else either)
        if name is not None and not term["minus"]:
            positive[name] = values, either
    chosen = language.sorts[sort]
    tie = [each for each in language.tie if each is not chosen]
    return Filter((chosen, *tie), tuple(conditions), falls, text, positive)


def _require_storable(values: list[str]) -> None:
    """Refuse characters that no database can store: NUL, and half of a surrogate pair."""
    for each in values:
        if "\0" in each or any("\ud800" <= character <= "\udfff" for character in each):
            raise InputError("filter_invalid.characters", text=ascii(each))


def _unquoted(value: str) -> str:
    """Return a value without its quotation marks."""
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return re.sub(r"\\(.)", r"\1", value[1:-1])


def _like(column: ColumnElement[Any], pattern: str) -> ColumnElement[bool]:
    """Return the condition that a column is like a pattern, without distinction of case."""
    return func.lower(column).like(func.lower(pattern), escape=_ESCAPE)


def _escaped(text: str) -> str:
    """Return a text as a pattern of LIKE that matches only this text."""
    return re.sub(r"([\\%_])", r"\\\1", text)


def named(column: ColumnElement[Any]) -> Condition:
    """Return the condition that a column is a value, with ``*`` for any characters."""
    return lambda value, _now: _like(column, "%".join(_escaped(part) for part in value.split("*")))


def contains(*columns: ColumnElement[Any]) -> Condition:
    """Return the condition that one of several columns contains a value."""
    return lambda value, _now: or_(*(_like(each, f"%{_escaped(value)}%") for each in columns))


def either(*conditions: Condition) -> Condition:
    """Return the condition that one of several conditions holds."""
    return lambda value, now_us: or_(*(each(value, now_us) for each in conditions))


def in_json(column: ColumnElement[Any], start: str = "", end: str = "") -> Condition:
    """Return the condition that the JSON text of a column contains a value, between a text at its start and another."""

    def json_contains(value: str, _now: int) -> ColumnElement[bool]:
        """Return the condition that the JSON text has this value at its place."""
        # Quotes and line breaks are stored as escapes, other characters as escapes or as they are.
        forms = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        return or_(*(_like(column, f"{_escaped(start)}%{_escaped(form)}%{_escaped(end)}%") for form in sorted(forms)))

    return json_contains


def one_of(column: ColumnElement[Any], words: Sequence[str], code: str) -> Condition:
    """Return the condition that a column is a word of a list; others are refused with a code."""

    def is_word(value: str, _now: int) -> ColumnElement[bool]:
        """Return the condition that the column is one of the known words; raises InputError for others."""
        if value.lower() not in words:
            raise InputError(code, word=value, words=words)
        return column == value.lower()

    return is_word


def label(column: ColumnElement[Any]) -> Condition:
    """Return the condition that labels, separated by spaces, contain a value."""
    return lambda value, _now: _like(" " + column + " ", f"% {_escaped(value)} %")


def since(column: ColumnElement[Any]) -> Condition:
    """Return the condition that an instant is a value or later: a date, an instant, or a duration ago."""
    return lambda value, now_us: column >= _instant(value, now_us)


def until(column: ColumnElement[Any]) -> Condition:
    """Return the condition that an instant is before a value."""
    return lambda value, now_us: column < _instant(value, now_us)


def _instant(text: str, now_us: int) -> int:
    """Return an instant from its text: a date, a time, or a duration before now."""
    try:
        found = datetime.fromisoformat(text)
        return to_us(found if found.tzinfo else found.replace(tzinfo=UTC))
    except ValueError:
        pass
    try:
        return now_us - parse_duration(text)
    except RuleInvalid:
        raise InputError("filter_invalid.instant", text=text) from None
