"""Typed params: what a declaration accepts, fills in and refuses, and declarations that are none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.core.errors import InputError
from lodger.engine.core.params import dump_fields, read_fields, validate_params

DECLARED = {
    "days": {"type": "integer", "min": 1, "max": 30, "default": 7, "help": "how far back"},
    "rate": {"type": "number", "min": 0.5},
    "to": {"type": "text", "required": True, "max": 10},
    "how": {"type": "choice", "choices": ["soft", "hard"]},
    "since": {"type": "instant"},
    "tags": {"type": "list", "max": 2},
    "quiet": {"type": "boolean", "default": True},
}


def test_defaults_are_filled_in_and_what_is_not_said_is_absent() -> None:
    assert validate_params(read_fields(DECLARED), {"to": "x"}) == {"days": 7, "to": "x", "quiet": True}
    assert validate_params(read_fields({}), None) == {}
    assert validate_params(None, [1, "anything"]) == [1, "anything"]


@pytest.mark.parametrize(
    ("params", "param"),
    [
        (None, "to"), ({}, "to"), ([], ""), ("x", ""), ({"to": "x", "more": 1}, "more"),
        ({"to": 1}, "to"), ({"to": "x" * 11}, "to"), ({"to": "x", "days": 0}, "days"), ({"to": "x", "days": 31}, "days"),
        ({"to": "x", "days": 1.5}, "days"), ({"to": "x", "days": True}, "days"), ({"to": "x", "days": "7"}, "days"),
        ({"to": "x", "days": float("nan")}, "days"), ({"to": "x", "rate": float("inf")}, "rate"),
        ({"to": "x", "rate": 0.4}, "rate"), ({"to": "x", "how": "other"}, "how"), ({"to": "x", "since": "2027-01-01"}, "since"),
        ({"to": "x", "since": "soon"}, "since"), ({"to": "x", "tags": ["a", "b", "c"]}, "tags"),
        ({"to": "x", "tags": ["a", 1]}, "tags"), ({"to": "x", "quiet": 1}, "quiet"), ({"to": "x", "how": ["soft"]}, "how"),
    ],
)  # fmt: skip
def test_what_does_not_satisfy_is_refused_by_name(params: object, param: str) -> None:
    with pytest.raises(InputError) as refused:
        validate_params(read_fields(DECLARED), params)
    assert refused.value.code == "params_invalid"
    assert refused.value.details["param"] == param


@pytest.mark.parametrize("value", [2**53, -1e20])
def test_a_number_that_is_too_large_is_not_called_none(value: float) -> None:
    with pytest.raises(InputError) as refused:
        validate_params(read_fields({"n": {"type": "number"}}), {"n": value})
    assert "from -9007199254740991 to 9007199254740991" in f"{refused.value.what} {refused.value.why}"


@pytest.mark.parametrize(
    "declared",
    [
        [], {"1a": {}}, {"a b": {}}, {"a": None}, {"a": {"type": "date"}}, {"a": {"kind": "text"}},
        {"a": {"type": "choice"}}, {"a": {"type": "choice", "choices": [1]}}, {"a": {"choices": ["x"]}},
        {"a": {"min": "1"}}, {"a": {"max": float("nan")}}, {"a": {"required": 1}}, {"a": {"help": 1}},
        {"a": {"type": "integer", "default": "x"}}, {"a": {"type": "integer", "max": 1, "default": 2}},
        {f"a{number}": {} for number in range(51)}, {"a": {"help": "x" * 501}},
    ],
)  # fmt: skip
def test_a_declaration_that_is_none_is_refused(declared: object) -> None:
    with pytest.raises(InputError) as refused:
        read_fields(declared)  # type: ignore[arg-type]  # as people give it
    assert refused.value.code == "fields_invalid"


def test_a_declaration_survives_the_ledger() -> None:
    fields = read_fields(DECLARED)
    again = read_fields(json.loads(json.dumps(dump_fields(fields))))
    assert again == fields


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*DECLARED, "other"]), _json, max_size=4) | _json)
def test_whatever_comes_is_accepted_or_refused_and_what_is_accepted_stays_so(params: object) -> None:
    fields = read_fields(DECLARED)
    try:
        once = validate_params(fields, params)
    except InputError:
        return
    assert validate_params(fields, once) == once
    assert set(once) <= set(DECLARED)
