"""The beginning of a request, while it comes: when it is whole, and what it shows, in however many pieces."""

import itertools

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.server.head import HEADER_BYTES, HEADER_LINES, Head, shown, too_long
from lodger.engine.server.known import KEPT, Known, digest

ASKED = b"GET /api/v1/me HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer lodger_x\r\nCookie: lodger=1\r\n\r\n"


def fed(pieces: list[bytes]) -> int | None:
    """Give after how many bytes the head is whole, None when it is not."""
    head, count = Head(), 0
    for piece in pieces:
        count += len(piece)
        if head.add(piece):
            return count
    return None


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n", b"\n\r\n"])
def test_it_is_whole_with_its_last_letter_wherever_it_is_cut(end: bytes) -> None:
    said = b"GET / HTTP/1.1\r\nHost: a" + end
    assert fed([bytes([letter]) for letter in said]) == len(said)
    for at in range(1, len(said)):
        assert fed([said[:at], said[at:]]) == len(said)
        assert fed([said[:at]]) is None


@given(st.binary(max_size=200), st.lists(st.integers(1, 200)))
def test_pieces_say_what_the_whole_says(said: bytes, cuts: list[int]) -> None:
    if not said:
        return
    edges = sorted({0, len(said), *(cut % len(said) for cut in cuts)})
    pieces = [said[begin:end] for begin, end in itertools.pairwise(edges)]
    whole, found = Head().add(said), fed(pieces)
    assert (found is not None) == whole


def test_what_is_refused_anyhow_is_not_waited_for() -> None:
    for said in (b"\x16\x03\x01", b"\r\n", b" GET", b"a" * (HEADER_BYTES + 1), b"a\n" * (HEADER_LINES + 1)):
        assert Head().add(said)
    assert not Head().add(b"a" * HEADER_BYTES)
    assert not Head().add(b"a\n" * HEADER_LINES)


def test_too_long_is_told_of_the_headers_not_of_the_body() -> None:
    assert not too_long(ASKED + b"\n" * 10_000)
    assert too_long(b"a\r\n" * (HEADER_LINES + 1))
    assert too_long(b"a" * (HEADER_BYTES + 1) + b"\r\n\r\n")


@pytest.mark.parametrize(
    "said",
    [
        ASKED,
        b"GET / HTTP/1.1\r\nHost: a\r\naUTHORIZATION:   Bearer lodger_x  \r\ncookie:lodger=1\r\n\r\n",
        b"GET / HTTP/1.1\nAuthorization: Bearer lodger_x\nHost: a\nCookie: lodger=1\n\n",
        ASKED + b"Authorization: Bearer other\r\n\r\n",
    ],
)
def test_the_digest_is_that_of_the_parsed_headers(said: bytes) -> None:
    """What the door sees in bytes is what the line finds in the parsed request: else nobody is known at the door."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(said)
    event = connection.next_event()
    assert isinstance(event, h11.Request)
    same = digest([(b"authorization", b"Bearer lodger_x"), (b"cookie", b"lodger=1")])
    assert shown(said) == same == digest(event.headers)


def test_another_token_is_another_digest_and_a_path_shows_nothing() -> None:
    assert shown(ASKED) != shown(ASKED.replace(b"lodger_x", b"lodger_y"))
    assert shown(b"GET /?authorization: Bearer lodger_x HTTP/1.1\r\nX-Authorization: 1\r\n\r\n") == digest([])


def test_memory_keeps_who_showed_it_last() -> None:
    known = Known()
    for number in range(KEPT + 1):
        known.note(b"%d" % number, "one")
    assert (len(known), known.owner(b"0"), known.owner(b"1")) == (KEPT, None, "one")
    known.note(b"1", None)
    assert (len(known), known.owner(b"1")) == (KEPT - 1, None)
