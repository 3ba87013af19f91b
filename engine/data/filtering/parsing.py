"""The filter language: parses a script's JSON into a typed tree, the only form in which filters go on.

``{state: "open", total: {gte: "10.00"}, or: [{...}, {...}], not: {...}}``. Operators: ``eq ne lt lte gt gte in notIn exists
contains startsWith``, and of documents ``has hasAny hasAll``; logic: ``and or not``. A condition on a list in a document holds if it
holds for one of the elements. Two-valued: a comparison with a missing value is false, ``not`` of it true, ``eq null``
matches missing ones. Text compares by code point, case-sensitive; with ``ignoreCase: true`` beside ``eq ne contains startsWith`` the
letters A to Z and a to z are alike, other letters are not, on every database. Nulls sort first.
"""

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from lodger.engine.core import strict_json
from lodger.engine.core.clock import EPOCH
from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.engine.data.values import kinds
from lodger.engine.data.values.fields import (
    NULL,
    OTHER,
    PATH,
    STRING,
    TIME,
    ColumnField,
    Field,
    OwnField,
    PathField,
    RelatedField,
    classed,
)
from lodger.engine.data.values.kinds import Kind

MAX_CONDITIONS = 200
MAX_DEPTH = 16
MAX_IN = 500
#: Values of all lists together: what is bound stays well below what a database takes in one statement.
MAX_VALUES = 2000
MAX_ORDER = 8
LOGIC = ("and", "or", "not")


class Op(StrEnum):
    """A comparison of one field with one value."""

    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LTE = "lte"
    GT = "gt"
    GTE = "gte"
    CONTAINS = "contains"
    STARTS_WITH = "startsWith"


IGNORE_CASE = "ignoreCase"
#: Of lists in documents.
_LISTED = ("has", "hasAny", "hasAll")
_OPS = (*(op.value for op in Op), "in", "notIn", "exists", *_LISTED)
#: Text of an instant, in UTC without an offset, and milliseconds that are read as one: from 1973 to 2286. Smaller numbers are amounts.
_INSTANT_TEXT = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII | re.IGNORECASE
)
_DATE = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}|\d \w{3,9} \d{4}|\w{3,9} \d{1,2},? \d{4}", re.ASCII)
_EARLIEST_MS, _LATEST_MS = 10**11, 10**13
#: Keys of values that JSON lacks, which are values and no operators.
_TAGS = frozenset({strict_json.INSTANT, "$bytes"})
#: Names of operators in other libraries.
_ALSO = {
    "equals": "eq", "equal": "eq", "is": "eq", "not": "ne", "neq": "ne", "notequals": "ne", "isnot": "ne", "greaterthan": "gt",
    "after": "gt",
    "greaterthanorequal": "gte", "ge": "gte", "min": "gte", "lessthan": "lt", "before": "lt", "lessthanorequal": "lte", "le": "lte",
    "max": "lte", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte", "=": "eq", "==": "eq", "===": "eq", "!=": "ne", "!==": "ne", "<>": "ne",
    "between": "gte", "endswith": "contains",
    "like": "contains", "ilike": "contains", "regex": "contains", "includes": "contains", "match": "contains", "search": "contains",
    "beginswith": "startsWith", "prefix": "startsWith", "nin": "notIn", "oneof": "in", "any": "in", "isnull": "exists", "isset": "exists",
    "hassome": "hasAny", "overlaps": "hasAny", "arraycontains": "has", "elemmatch": "has", "hasevery": "hasAll", "all": "hasAll",
    "&&": "and", "||": "or", "!": "not", "nor": "not",
}  # fmt: skip
_ALSO_LOGIC = frozenset({"AND", "OR", "NOT", "&&", "||", "!"})
_RANGE = {Op.LT, Op.LTE, Op.GT, Op.GTE}
_TEXTUAL = {Op.CONTAINS, Op.STARTS_WITH}
_FOLDED = {Op.EQ, Op.NE, *_TEXTUAL}
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


@dataclass(frozen=True, slots=True)
class Compare:
    """``value`` is canonical for a column, a (class, comparable) pair for a path; folded text if ``ignore_case``."""

    field: Field
    op: Op
    value: Any
    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class In:
    """The field equals one of the values."""

    field: Field
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class And:
    """All parts; true when there are none."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any part; false when there are none."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: "Filter"


Filter = Compare | In | And | Or | Not
#: Gives the field of a name in a filter; of an order or an aggregate, which ask of the row itself.
Lookup = Callable[[str], Field]
OwnLookup = Callable[[str], OwnField]


@dataclass(frozen=True, slots=True)
class Order:
    """One term of an ordering."""

    field: OwnField
    descending: bool = False


def _undefined(where: str) -> CallRefused:
    """Return the refusal of a filter with an undefined value."""
    return CallRefused(
        "filter_undefined",
        f"{where} of the filter is undefined; give a value, leave the condition out, or match missing values with null",
    )


def _without_tag(value: Any) -> Any:
    """Return an object as the script wrote it: on the wire, objects with keys that begin with $ are wrapped."""
    return value["$object"] if isinstance(value, dict) and value.keys() == {"$object"} else value


def _nearest(name: str, known: tuple[str, ...]) -> str:
    """Return a question about the operator that was meant, by the names of other libraries or by its letters; empty if none is near."""
    plain = name.lstrip("$").lower()
    meant = _ALSO.get(plain) or next(
        iter(difflib.get_close_matches(plain, [each.lower() for each in known], 1, 0.7)), None
    )
    found = next((each for each in known if meant is not None and each.lower() == meant.lower()), None)
    return "" if found is None else f"; did you mean {found}?"


class _Reader:
    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.conditions = 0
        self.values = 0

    def tree(self, value: Any, depth: int) -> Filter:
        """Read a filter or a part of one."""
        if value == strict_json.UNDEFINED:
            raise _undefined("a part")
        value = _without_tag(value)
        if not isinstance(value, dict):
            raise bad_request("a filter is an object like { state: 'open' }")
        if depth > MAX_DEPTH:
            raise bad_request(f"a filter is nested at most {MAX_DEPTH} levels deep")
        parts = [self.entry(name, inner, depth) for name, inner in value.items()]
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def entry(self, name: str, inner: Any, depth: int) -> Filter:
        """Read one member of a filter: a condition on a field, or a combination of filters."""
        if name == "not" and inner != strict_json.UNDEFINED:
            return Not(self.tree(inner, depth + 1))
        if name in LOGIC:
            if inner == strict_json.UNDEFINED:
                raise _undefined(f"'{name}'")
            if not isinstance(inner, list):
                raise bad_request(f"'{name}' takes a list of filters")
            parts = tuple(self.tree(part, depth + 1) for part in inner)
            return And(parts) if name == "and" else Or(parts)
        if name.startswith("$") or name in _ALSO_LOGIC:
            raise bad_request(
                f"there is no operator {name[:40]}{_nearest(name, LOGIC)} (a filter joins conditions by {', '.join(LOGIC)})"
            )
        field = self.lookup(name)
        if inner == strict_json.UNDEFINED:
            raise _undefined(name)
        inner = _without_tag(inner)
        if not isinstance(inner, dict) or inner.keys() & _TAGS:
            return self.compare(field, "eq", inner)
        if not inner or inner.keys() == {IGNORE_CASE}:
            raise bad_request(f"the condition on {field.name} is empty")
        ignore_case = inner.get(IGNORE_CASE, False)
        if not isinstance(ignore_case, bool):
            raise bad_request(f"'{IGNORE_CASE}' is true or false")
        said = {op: operand for op, operand in inner.items() if op != IGNORE_CASE}
        parts = tuple(self.compare(field, op, operand, ignore_case=ignore_case) for op, operand in said.items())
        return parts[0] if len(parts) == 1 else And(parts)

    def compare(self, field: Field, op: str, value: Any, *, ignore_case: bool = False) -> Filter:
        """Read one condition."""
        self.conditions += 1
        if self.conditions > MAX_CONDITIONS:
            raise bad_request(f"a filter has at most {MAX_CONDITIONS} conditions")
        if value == strict_json.UNDEFINED or (isinstance(value, list) and strict_json.UNDEFINED in value):
            raise _undefined(f"'{op}' of {field.name}")
        if op not in _OPS:
            member = isinstance(field, PathField) and PATH.fullmatch(op)
            inside = f"; for a value in an object write {{ '{field.name}.{op}': … }}" if member else ""
            raise bad_request(
                f"there is no operator {op[:40]}{_nearest(op, _OPS) or inside} (the operators are {', '.join(_OPS)})"
            )
        if ignore_case and op not in _FOLDED:
            raise bad_request(f"'{IGNORE_CASE}' goes with {', '.join(sorted(_FOLDED))}, not with {op}")
        if op in _LISTED:
            return self.listed(field, op, value)
        if op == "exists":
            if not isinstance(value, bool):
                raise bad_request("'exists' is true or false")
            missing = Compare(field, Op.EQ, operand(field, None, Op.EQ))
            return Not(missing) if value else missing
        if op in ("in", "notIn"):
            if not isinstance(value, list) or len(value) > MAX_IN:
                raise bad_request(f"'{op}' takes a list of at most {MAX_IN} values")
            self.values += len(value)
            if self.values > MAX_VALUES:
                raise bad_request(f"the lists of a filter have at most {MAX_VALUES} values in total")
            among = In(field, tuple(each for item in value for each in _readings(field, item, Op.EQ)))
            return among if op == "in" else Not(among)
        if ignore_case:
            return Compare(field, Op(op), _folded_operand(field, operand(field, value, Op(op))), ignore_case=True)
        parts = tuple(Compare(field, Op(op), each) for each in _readings(field, value, Op(op)))
        return parts[0] if len(parts) == 1 else And(parts) if op == "ne" else Or(parts)

    def listed(self, field: Field, op: str, value: Any) -> Filter:
        """Return the condition of a list in a document; a single value is a list of one."""
        if not isinstance(field, PathField):
            raise bad_request(f"'{op}' asks a list in a document, and {field.name} is a column")
        wanted = [value] if op == "has" else value
        if not isinstance(wanted, list) or None in wanted:
            raise bad_request(f"'{op}' takes {'a value' if op == 'has' else 'a list of values'}, and none is null")
        if op == "hasAll":
            return And(tuple(self.compare(field, "eq", each) for each in wanted))
        return self.compare(field, "in", wanted)


def fold(text: str) -> str:
    """Return text with the letters A to Z in lower case; others stay, since databases differ in them."""
    return text.translate(_LOWER)


def _folded_operand(field: Field, wanted: Any) -> Any:
    """Return the text of a comparison that ignores case, folded. Raises CallRefused: ``bad_request``: no text."""
    if isinstance(field, PathField):
        rank, inner = wanted
        if rank == STRING:
            return rank, fold(inner)
    elif isinstance(wanted, str) and (field.inner if isinstance(field, RelatedField) else field).kind is Kind.TEXT:
        return fold(wanted)
    raise bad_request(f"'{IGNORE_CASE}' compares text; {field.name} is compared with something else")


def chooses_all(tree: Filter) -> bool | None:
    """Whether a filter matches every row (True) or none (False) whatever their values; None when that depends on the row."""
    if isinstance(tree, Not):
        part = chooses_all(tree.part)
        return None if part is None else not part
    if isinstance(tree, And | Or):
        settling = isinstance(tree, Or)
        parts = [chooses_all(part) for part in tree.parts]
        return settling if settling in parts else None if None in parts else not settling
    return False if isinstance(tree, In) and not tree.values else None


def inner_of(tree: Compare | In) -> Compare | In:
    """Return a condition on a related row as a condition of that row's own dataset."""
    assert isinstance(tree.field, RelatedField)
    return replace(tree, field=tree.field.inner)


def read_filter(value: Any, lookup: Lookup) -> Filter:
    """Parse a script's filter.

    Args:
        value: parsed JSON; None and ``{}`` are everything.
        lookup: returns the field of a name, or raises.

    Raises:
        CallRefused: ``bad_request``; the message names the rule that is broken.
    """
    return And(()) if value is None else _Reader(lookup).tree(value, 0)


def read_order(value: Any, lookup: OwnLookup, key: ColumnField) -> tuple[Order, ...]:
    """Parse an ordering: ``"name"``, ``"-name"``, ``{name: "desc"}`` or a list of those; the key is always the last term.

    Raises:
        CallRefused: ``bad_request``.
    """
    terms: list[Order] = []
    for item in [] if value is None else value if isinstance(value, list) else [value]:
        pairs: list[tuple[str, Any]]
        if isinstance(item, str):
            pairs = [(item.removeprefix("-"), "desc" if item.startswith("-") else "asc")]
        elif isinstance(item, dict) and item:
            pairs = list(item.items())
        else:
            raise bad_request("an order is 'name', '-name', { name: 'desc' } or a list of those")
        for name, direction in pairs:
            if direction not in ("asc", "desc"):
                raise bad_request("a direction is 'asc' or 'desc'")
            field = lookup(name)
            if isinstance(field, ColumnField) and field.kind not in kinds.ORDERED:
                raise bad_request(f"{field.name} is {field.kind}, which has no order")
            terms.append(Order(field, direction == "desc"))
    if len(terms) > MAX_ORDER:
        raise bad_request(f"an order has at most {MAX_ORDER} terms")
    if not any(term.field is key for term in terms):
        terms.append(Order(key))
    return tuple(terms)


def _readings(field: Field, value: Any, op: Op) -> tuple[Any, ...]:
    """Return the operands that a value may mean: in a document, an instant's text or milliseconds also stand for a stored instant."""
    wanted = operand(field, value, op)
    if not isinstance(field, PathField) or op in _TEXTUAL:
        return (wanted,)
    try:
        if isinstance(value, str) and _INSTANT_TEXT.fullmatch(value):
            moment = datetime.fromisoformat(value.upper())
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool) and _EARLIEST_MS <= value <= _LATEST_MS:
            moment = EPOCH + timedelta(milliseconds=value)
        else:
            return (wanted,)
        return wanted, _path_operand(field, strict_json.tag_instant(moment), op)
    except (ValueError, OverflowError):
        return (wanted,)


def never_instants(tree: Filter) -> Iterator[PathField]:
    """Return the fields that a filter compares with values that no stored instant can match, such as ``{ gt: "yesterday" }``."""
    if isinstance(tree, And | Or):
        parts = tree.parts
        if isinstance(tree, Or) and any(
            isinstance(part, Compare) and isinstance(part.field, PathField) and part.value[0] == TIME for part in parts
        ):
            return  # both readings of one value
        for part in parts:
            yield from never_instants(part)
    elif isinstance(tree, Not):
        yield from never_instants(tree.part)
    elif isinstance(tree.field, PathField):
        values = tree.values if isinstance(tree, In) else (tree.value,)
        ordered = isinstance(tree, Compare) and tree.op in (*_RANGE, *_TEXTUAL)
        texts = [inner for rank, inner in values if rank == STRING and _DATE.search(inner)]
        if (ordered and values[0][0] not in (TIME, NULL)) or (texts and all(rank != TIME for rank, _ in values)):
            yield tree.field


def operand(field: Field, value: Any, op: Op) -> Any:
    """Return the checked value that a comparison is made with, in the field's comparable form."""
    if isinstance(field, PathField):
        return _path_operand(field, value, op)
    if isinstance(field, RelatedField):
        field = field.inner
    if op in _TEXTUAL:
        if field.kind is not Kind.TEXT or not isinstance(value, str):
            raise bad_request(f"'{op}' compares text with a text column; {field.name} is {field.kind}")
        return value
    if value is None:
        if op in _RANGE:
            raise bad_request(f"'{op}' needs a value; match missing values with {{ {field.name}: null }}")
        return None
    if field.kind is Kind.JSON:
        raise bad_request(f"{field.name} is JSON, which can only be compared with null")
    if op in _RANGE and field.kind not in kinds.ORDERED:
        raise bad_request(f"{field.name} is {field.kind}, which has no order")
    return kinds.read(field.kind, value, field.name)


def _path_operand(field: PathField, value: Any, op: Op) -> tuple[int, Any]:
    """Return the operand of a comparison inside a document, as (type rank, comparable value)."""
    try:
        rank, inner = classed(strict_json.normal(value))
    except CallRefused as refusal:
        raise bad_request(f"{field.name}: {refusal.message}") from None
    if rank == OTHER:
        raise bad_request(
            f"{field.name} can be compared with null, true, false, numbers, text and instants; has, hasAny and hasAll ask its lists"
        )
    if op in _TEXTUAL and rank != STRING:
        raise bad_request(f"'{op}' takes text")
    if op in _RANGE and rank == NULL:
        raise bad_request(f"'{op}' needs a value; match missing values with null")
    return rank, inner
