"""JSON across the wall: read strictly, and every value there and back unchanged."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.core import strict_json
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.filtering.cursor import read_cursor, write_cursor
from lodger.engine.data.filtering.evaluator import terms_of
from lodger.engine.data.filtering.parsing import Order
from lodger.engine.data.values import kinds
from lodger.engine.data.values.fields import PathField, classed
from lodger.engine.data.values.kinds import Kind

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
PLAIN_KEYS = TEXT.filter(lambda key: not key.startswith("$"))
TAGGED = st.datetimes(timezones=st.just(dt.UTC)).map(strict_json.tag_instant) | st.binary(max_size=5).map(
    strict_json.tag_bytes
)
VALUES = st.recursive(
    SCALARS | TAGGED,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN_KEYS, inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_a_stored_value_is_what_was_said(value: Any) -> None:
    assert strict_json.normal(strict_json.parse(strict_json.dump(value))) == value
    assert strict_json.normal(strict_json.normal(value)) == strict_json.normal(value)


@given(st.datetimes(timezones=st.just(dt.UTC)), st.integers(-14 * 60, 14 * 60))
def test_instants_are_exact_and_sort_as_text(instant: dt.datetime, east: int) -> None:
    assert strict_json.read_instant(strict_json.tag_instant(instant)) == instant
    try:
        elsewhere = instant.astimezone(dt.timezone(dt.timedelta(minutes=east))).isoformat()
    except OverflowError:
        return
    assert strict_json.read_instant(elsewhere) == instant
    other = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    assert (strict_json.instant_text(instant) < strict_json.instant_text(other)) == (instant < other)


KINDS: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.INT: st.integers(-(2**53) + 1, 2**53 - 1),
    Kind.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Kind.FLOAT: st.floats(allow_nan=False, allow_infinity=False),
    Kind.DECIMAL: st.decimals(-(10**20), 10**20, places=4),
    Kind.BOOL: st.booleans(),
    Kind.TEXT: TEXT,
    Kind.INSTANT: st.datetimes(timezones=st.just(dt.UTC)),
    Kind.DATE: st.dates(dt.date(1, 1, 1)),
    Kind.UUID: st.uuids().map(str),
    Kind.BYTES: st.binary(max_size=9),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_crosses_exactly(kind: Kind) -> None:
    @given(KINDS[kind])
    def crosses(value: Any) -> None:
        shown = strict_json.parse(strict_json.dump(kinds.show(kind, value)))
        assert kinds.read(kind, shown, "x") == value

    crosses()


@pytest.mark.parametrize(("value", "shown"), [(2**32 + 7, "4294967303"), (2**63 - 1, "9223372036854775807"), (7, "7")])
def test_wide_columns_are_text_by_type_never_by_value(value: int, shown: str) -> None:
    assert kinds.show(Kind.BIGINT, value) == shown


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Kind.INT, "7"), (Kind.INT, 1.5), (Kind.INT, True), (Kind.INT, 2**53), (Kind.BIGINT, "9223372036854775808"), (Kind.BIGINT, "1e3"),
        (Kind.BIGINT, "४"), (Kind.FLOAT, "1"), (Kind.FLOAT, True), (Kind.DECIMAL, "1,5"), (Kind.DECIMAL, "NaN"), (Kind.DECIMAL, "1e5"),
        (Kind.DECIMAL, "9" * 70), (Kind.BOOL, 1), (Kind.TEXT, 1), (Kind.TEXT, ["a"]), (Kind.INSTANT, "2026-01-01"), (Kind.INSTANT, 5),
        (Kind.INSTANT, "2026-02-30T00:00:00Z"), (Kind.INSTANT, "2026-02-20T00:00:00+99:99"), (Kind.INSTANT, "0001-01-01T00:00:00+14:00"),
        (Kind.DATE, "2026-2-3"),
        (Kind.DATE, "2026-02-30"),        (Kind.UUID, "x"), (Kind.UUID, "0" * 41),
        (Kind.BYTES, "AA=="), (Kind.BYTES, {"$bytes": "A"}), (Kind.BYTES, {"$bytes": 5}),
        (Kind.JSON, {"$unknown": 1}),
    ],
)  # fmt: skip
def test_another_type_is_refused(kind: Kind, wrong: Any) -> None:
    with pytest.raises(CallRefused) as found:
        kinds.read(kind, wrong, "column")
    assert found.value.code == "bad_request"


def test_decimals_of_javascript_numbers_are_what_they_look_like() -> None:
    assert kinds.read(Kind.DECIMAL, 0.1, "x") == Decimal("0.1")


@given(SCALARS | TAGGED)
def test_a_cursor_says_where_it_was(value: Any) -> None:
    order = (Order(PathField("a", ("a",)), descending=True),)
    place = terms_of(order, {"a": strict_json.normal(value)})
    assert read_cursor(write_cursor("s", order, place), "s", order) == place == (classed(strict_json.normal(value)),)


def test_parsing_is_bounded_before_it_recurses() -> None:
    for text in ("[" * 10**6, '{"a":' * 10**5, "[" + "1," * 200_000 + "1]", '["' + "[" * 70 + '"]' + "]"):
        with pytest.raises(CallRefused):
            strict_json.parse(text)
    assert strict_json.parse(json.dumps(["[" * 70])) == ["[" * 70], "brackets inside text are text"


def test_what_is_many_is_values_and_containers_and_not_what_stands_in_texts() -> None:
    for text in ('{"a": "' + '[{,\\"' * 50 + '"}', "[" + ",".join("1" * 11) + "]", "[" + ",".join(["[]"] * 9) + "]"):
        assert strict_json.parse(text, nodes=10) == json.loads(text)
    for text in (
        "[" + ",".join("1" * 12) + "]",
        "[" + "[[1]]," * 5 + "1]",
        "{" + "".join(f'"{n}":1,' for n in range(11)) + '"a":1}',
    ):
        with pytest.raises(CallRefused, match="more than 10 values"):
            strict_json.parse(text, nodes=10)


@pytest.mark.parametrize(
    "number", ["1e999", "-1E+309", "9" * 309, "-" + "9" * 400, "1e0309", "0." + "0" * 50 + "1e400"]
)
def test_a_number_beyond_a_double_is_refused(number: str) -> None:
    with pytest.raises(CallRefused, match="beyond the range of a double"):
        strict_json.parse(f'{{"n": {number}}}')


@given(st.integers(-(10**45), 10**45) | st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_is_read_and_one_of_more_than_forty_digits_as_a_double(number: float) -> None:
    text = json.dumps(number)
    read = strict_json.parse(text)
    assert read == (float(number) if len(text) > 40 else number)
    assert isinstance(read, float if isinstance(number, float) or len(text) > 40 else int)
