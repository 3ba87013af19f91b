"""The scan of untrusted JSON: agrees with a recursive parser where that works, and takes linear time."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lodger.sandbox import prescan
from lodger.sandbox.prescan import JsonRefused, check, parse, require, scan

values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
)


def nesting(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(nesting, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(nesting, value), default=0)
    return 0


def depth(text: bytes) -> int:
    """Return the least bound of the nesting that accepts a text."""
    return next(most for most in range(len(text) + 1) if holds(text, max_depth=most))


@given(values, some.booleans())
def test_depth_is_that_of_the_value(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert depth(text) == nesting(value)


@given(values)
def test_parse_gives_the_value(value: Any) -> None:
    text = json.dumps(value).encode()
    assert parse(text, max_bytes=1 << 20, max_depth=1000) == json.loads(text)
    assert check(text, max_bytes=1 << 20, max_depth=1000) == text.decode()


@given(some.binary(max_size=200))
def test_any_bytes_are_answered(data: bytes) -> None:
    for look in (scan, parse, check):
        with contextlib.suppress(JsonRefused):
            look(data, max_bytes=1000, max_depth=10)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"NaN", "not_json"),
        (b"[Infinity]", "not_json"),
        (b"-Infinity", "not_json"),
        (b"1e400", "number_out_of_range"),
        (b'{"a":1,"a":2}', "duplicate_key"),
        (b'[{"x":{"a":1,"b":2,"a":3}}]', "duplicate_key"),
        (rb'{"a":1,"\u0061":2}', "duplicate_key"),
        (b'{"__proto__":1,"__proto__":2}', "duplicate_key"),
        (b'"\xff"', "not_utf8"),
        (b'"\xed\xa0\x80"', "not_utf8"),
        (b"\xef\xbb\xbf1", "not_json"),
        (b"", "not_json"),
        (b"[1,]", "not_json"),
        (b'"a', "not_json"),
        (b"1 2", "not_json"),
        (b"1" * 5000, "number_out_of_range"),
        (b"[" * 11 + b"]" * 11, "too_deep"),
        (b'{"a":' * 11 + b"1" + b"}" * 11, "too_deep"),
        (b"[" * 100_000, "too_deep"),
        (b" " * 200_001, "too_large"),
        (b"[1e0000309]", "number_out_of_range"),
        (b'{"a":-' + b"1" * 5000 + b"}", "number_out_of_range"),
    ],
)
def test_refusals(data: bytes, code: str) -> None:
    with pytest.raises(JsonRefused) as refused:
        parse(data, max_bytes=200_000, max_depth=10)
    assert refused.value.code == code


@given(some.from_regex(r"-?(0|[1-9][0-9]{0,400})([.][0-9]{1,40})?([eE][+-]?[0-9]{1,4})?", fullmatch=True))
def test_a_number_crosses_if_a_double_holds_it(number: str) -> None:
    for look in (check, parse):
        if abs(float(number)) == float("inf"):
            with pytest.raises(JsonRefused) as refused:
                look(number.encode(), max_bytes=10_000, max_depth=10)
            assert refused.value.code == "number_out_of_range"
        else:
            look(number.encode(), max_bytes=10_000, max_depth=10)


@pytest.mark.parametrize(
    "text",
    [b"1e308", b"1.7976931348623157e+308", b"9" * 308, b'"1e999"', b'"' + b"1" * 5000 + b'"', b"5e-324", b"1e-999"],
)
def test_check_takes_what_only_looks_large(text: bytes) -> None:
    assert check(text, max_bytes=10_000, max_depth=10) == text.decode()


@pytest.mark.parametrize(
    "bomb",
    [
        b'"' + rb"\"" * 500_000,
        b'"' * 1_000_001,
        b"[]" * 500_000,
        b"\\" * 1_000_000,
        (b"[" * 50 + b"]" * 50) * 10_000,
        b'"\\' * 500_000,
        b"[" + (b"1" * 308 + b",") * 3_300 + b"1]",
        b'"' + b"e" + b"0" * 1_000_000 + b'"',
        b'"' + b"1" * 1_000_000 + b'"',
        b"[" + b"1e308," * 150_000 + b"1]",
        b"[" + b"{}," * 300_000 + b"1]",
        b"{" + b",".join(b'"%d":1' % n for n in range(80_000)) + b"}",
    ],
    ids=[
        "unterminated escapes", "quotes", "pairs", "backslashes", "trees", "quote and escape", "long numbers",
        "zeros", "digits", "exponents", "empty objects", "keys",
    ],
)  # fmt: skip
def test_bombs_are_linear(bomb: bytes) -> None:
    started = time.process_time()
    try:
        scan(bomb, max_bytes=1 << 20, max_depth=64)
        check(bomb, max_bytes=1 << 20, max_depth=64)
        parse(bomb, max_bytes=1 << 20, max_depth=64)
    except JsonRefused:
        pass
    assert time.process_time() - started < 2, "a megabyte takes some 30 ms"


def count(value: Any) -> int:
    """Return the number of values, keys included."""
    if isinstance(value, dict):
        return 1 + sum(1 + count(each) for each in value.values())
    return 1 + sum(map(count, value)) if isinstance(value, list) else 1


def holds(text: bytes, **maximum: int) -> bool:
    try:
        require(text, **{"max_depth": 1 << 20, **maximum})
    except JsonRefused as refused:
        return refused.code != ("too_many_values" if "max_values" in maximum else "too_deep")
    return True


@given(values, some.sampled_from([1, 3, 7, 1 << 20]))
def test_pieces_see_what_the_whole_shows(value: Any, piece: int) -> None:
    """The sums do not depend on where a piece ends: in a string, after a backslash or between brackets."""
    text = json.dumps(value).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(prescan, "_PIECE", piece)
        deep = nesting(value)
        assert holds(text, max_depth=deep)
        assert deep == 0 or not holds(text, max_depth=deep - 1)
        # Each piece counts the largest of: keys and strings, separators, containers.
        assert holds(text, max_values=2 * count(value) + 1)
        if isinstance(value, list) and len(value) > 1:
            assert not holds(text, max_values=len(value) - 1)


@given(some.text('"[]{},:\\x', max_size=60), some.sampled_from([1, 3, 7, 1 << 20]))
def test_pieces_see_the_depth_of_any_text(text: str, piece: int) -> None:
    deep = depth(text.encode())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(prescan, "_PIECE", piece)
        assert holds(text.encode(), max_depth=deep)
        assert deep == 0 or not holds(text.encode(), max_depth=deep - 1)


@pytest.mark.parametrize("text", [b"[", b'"', b"1,", b'"a":', b"{"])
def test_no_more_is_looked_at_than_refuses(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hostile text is refused after a few pieces."""
    looked = 0

    class Counted:
        def subn(self, by: bytes, piece: bytes) -> tuple[bytes, int]:
            nonlocal looked
            looked += len(piece)
            return string.subn(by, piece)

        def match(self, data: bytes, at: int) -> Any:
            return string.match(data, at)

    string = prescan.STRING
    monkeypatch.setattr(prescan, "STRING", Counted())
    with pytest.raises(JsonRefused):
        require(text * 2_000_000, max_depth=64, max_values=10_000)
    assert looked <= 200_000
    assert (looked == 0) is (b'"' in text), "quotes are counted first"
