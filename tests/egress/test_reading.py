"""What is judged without any network: addresses, URLs, headers, bodies, turns."""

import gzip
from collections.abc import Callable
from ipaddress import ip_address

import brotli
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.core.errors import InputError
from lodger.engine.core.refusal import CallRefused
from lodger.engine.core.token_buckets import TokenBuckets
from lodger.engine.egress import headers, target
from lodger.engine.egress.address import AddressPolicy, closed
from lodger.engine.egress.client import joined_url
from lodger.engine.egress.decoding import Body
from lodger.engine.egress.request_errors import Cut, NoAnswer, Refused, TooLarge

#: What ``ipaddress.is_global`` calls global and is not a place to go; then what neither calls so.
NEVER = [
    "64:ff9b::169.254.169.254", "64:ff9b:1::1", "2002:7f00:1::", "::127.0.0.1", "fec0::1", "224.0.0.1", "ff02::1",
    "192.88.99.1", "192.0.0.8", "127.0.0.1", "10.1.2.3", "::1", "::", "0.0.0.0", "169.254.169.254", "100.64.0.1",
    "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fe80::1", "::ffff:127.0.0.1", "::ffff:0:127.0.0.1",
    "2001:0:7f00:1::", "2001:db8::1", "3fff::1", "5f00::1", "100::1", "240.0.0.1", "255.255.255.255", "192.0.2.1",
    "198.18.0.1", "2001:470::5efe:10.0.0.1", "2001:470::200:5efe:127.0.0.1", "4000::1", "64:ff9b::10.0.0.1",
]  # fmt: skip
ALWAYS = ["93.184.216.34", "8.8.8.8", "1.1.1.1", "2606:2800:220:1::1", "2a00:1450::1", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8", "192.0.1.1",
          "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "168.63.129.17", "2001:470::1", "223.255.255.255"]  # fmt: skip


@pytest.mark.parametrize("address", NEVER)
def test_closed(address: str) -> None:
    assert closed(ip_address(address))


@pytest.mark.parametrize("address", ALWAYS)
def test_open(address: str) -> None:
    assert closed(ip_address(address)) is None


@given(st.ip_addresses(v=4))
def test_an_address_is_judged_alike_however_it_is_carried(address: object) -> None:
    carried = [ip_address(f"::ffff:{address}"), ip_address(f"64:ff9b::{address}")]
    assert {closed(each) is None for each in carried} == {closed(ip_address(str(address))) is None}
    if closed(ip_address(str(address))):
        assert closed(ip_address(f"2001:470::5efe:{address}"))


def test_the_operator_opens_what_she_names_and_no_more() -> None:
    addresses = AddressPolicy(["10.1.2.0/24", "fd00:1::/64"])
    for address, opened in (
        ("10.1.2.9", True),
        ("::ffff:10.1.2.9", True),
        ("10.1.3.9", False),
        ("fd00:1::9", True),
        ("fd00:2::9", False),
    ):
        assert (addresses.closed(ip_address(address)) is None) is opened
    with pytest.raises(InputError, match="not a network"):
        AddressPolicy(["10.1.2.9/24"])


@pytest.mark.parametrize(
    ("url", "authority", "path"),
    [
        ("http://a.example/", "a.example", "/"),
        ("https://a.example:8443/x?y=%20z&q='<>|^`", "a.example:8443", "/x?y=%20z&q='<>|^`"),
        ("http://93.184.216.34:80/", "93.184.216.34", "/"),
        ("https://[2606:2800:220:1::1]:443/a", "[2606:2800:220:1::1]", "/a"),
        ("http://xn--mnchen-3ya.example/", "xn--mnchen-3ya.example", "/"),
        ("http://_srv.a.example/", "_srv.a.example", "/"),
    ],
)
def test_canonical_urls_are_read(url: str, authority: str, path: str) -> None:
    read = target.read(url)
    assert (read.authority, read.path) == (authority, path)


@given(st.text(max_size=60))
def test_whatever_is_read_is_written_as_it_was(text: str) -> None:
    for url in (text, "http://" + text, "http://a.example" + text, "https://" + text + ".example/"):
        try:
            read = target.read(url)
        except Refused:
            continue
        assert str(target.read(str(read))) == str(read)
        assert not set(str(read)) & set(" \t\r\n#@\\\0") - set("@\\"), (
            "no character that ends a line, a request or a URL"
        )
        assert "@" not in read.authority


@pytest.mark.parametrize(
    ("location", "joined"),
    [
        ("/b", "http://a.example/b"), ("b", "http://a.example/x/b"), ("?q", "http://a.example/x/y?q"), ("https://B.example", "https://b.example/"),
        ("//c.example/d#f", "http://c.example/d"), ("http://c.example:80", "http://c.example/"), ("HTTPS://c.example:443?x=/y", "https://c.example/?x=/y"),
        ("/a b", "http://a.example/a%20b"), ("../../z", "http://a.example/z"),
    ],
)  # fmt: skip
def test_where_a_redirect_leads(location: str, joined: str) -> None:
    assert joined_url("http://a.example/x/y", location) == joined
    assert str(target.read(joined)) == joined


OURS = ("Host", "HOST", "Transfer-Encoding", "Content-Length", "Connection", "Upgrade", "TE", "Expect", "Via", "Proxy-Authorization",
        "Proxy-Connection", "Sec-Fetch-Site", "X-Forwarded-For", "Accept-Encoding")  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X\r\nHost", "a"), ("X", "a\r\nHost: b"), ("X", "a\nb"), ("X", "a\rb"), ("X", "a\0b"), ("X", " a"), ("X", "a\t"),
        ("X:", "a"), ("", "a"), ("X Y", "a"), ("X\0", "a"), ("Ⅹ", "a"), ("X", "ā"), ("X", "\ud800"), ("X", "a\x7f"),
        ("X", "a\x85b"), ("X", "a\u2028b"),
        *((name, "x") for name in OURS),
    ],
)  # fmt: skip
def test_headers_that_would_bend_a_request(name: str, value: str) -> None:
    with pytest.raises(CallRefused) as refused:
        headers.checked([(name, value)])
    assert refused.value.code == "bad_header"


def test_headers_are_bounded() -> None:
    assert headers.checked([("X-A", "é\tü"), ("Cookie", "a=b")]) == (("x-a", "é\tü"), ("cookie", "a=b"))
    for many in ([("a", "b")] * 65, [("a", "b" * 20_000)]):
        with pytest.raises(CallRefused):
            headers.checked(many)


def decode_in_pieces(encoding: str, data: bytes, maximum: int = 2 * 1024 * 1024, step: int = 1000) -> bytes:
    """Decode a body that arrives in pieces of ``step`` bytes."""
    body = Body(encoding, maximum)
    for at in range(0, len(data), step):
        body.take(data[at : at + step])
    return body.whole()


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_bodies_are_decoded(step: int) -> None:
    text = bytes(range(256)) * 40
    assert decode_in_pieces("gzip", gzip.compress(text), step=step) == text
    assert decode_in_pieces("", text, step=step) == text
    assert decode_in_pieces("gzip", gzip.compress(text) + gzip.compress(b"more"), step=step) == text + b"more"
    assert decode_in_pieces("br", brotli.compress(text), step=step) == text
    assert decode_in_pieces("zstd", zstd.compress(text) + zstd.compress(b"more"), step=step) == text + b"more"
    assert decode_in_pieces("gzip", b"") == b""


BROKEN: dict[str, tuple[str, Callable[[], bytes], type[NoAnswer]]] = {
    "a gzip bomb": ("gzip", lambda: gzip.compress(bytes(30_000_000)), TooLarge),
    "a small bomb": ("gzip", lambda: gzip.compress(bytes(1_000_000)), TooLarge),
    "two encodings": ("gzip, gzip", bytes, Cut),
    "a brotli bomb": ("br", lambda: brotli.compress(bytes(30_000_000)), TooLarge),
    "a zstandard bomb": ("zstd", lambda: zstd.compress(bytes(30_000_000)), TooLarge),
    "half of brotli": ("br", lambda: brotli.compress(b"x" * 500)[:-3], Cut),
    "half of zstandard": ("zstd", lambda: zstd.compress(b"x" * 500)[:-3], Cut),
    "no brotli": ("br", lambda: b"no brotli at all", Cut),
    "brotli and more": ("br", lambda: brotli.compress(b"x") + b"trailing", Cut),
    "compress": ("compress", bytes, Cut),
    "not what it says": ("gzip", lambda: b"no gzip at all", Cut),
    "half": ("gzip", lambda: gzip.compress(b"x" * 500)[:-9], Cut),
    "something behind": ("gzip", lambda: gzip.compress(b"x") + b"trailing", Cut),
    "much behind": ("gzip", lambda: gzip.compress(b"x") + bytes(5_000_000), Cut),
    "plainly too much": ("", lambda: bytes(3_000_000), TooLarge),
}


@pytest.mark.parametrize("name", BROKEN)
def test_bombs_and_broken_bodies(name: str) -> None:
    encoding, data, error = BROKEN[name]
    with pytest.raises(error):
        decode_in_pieces(encoding, data())


def test_a_brotli_body_is_one_stream_wherever_its_pieces_end() -> None:
    one = brotli.compress(b"x" * 500)
    for step in (1, len(one), 1000):
        with pytest.raises(Cut):
            decode_in_pieces("br", one * 2, step=step)


def test_one_layer_is_undone_and_a_bomb_inside_stays_packed() -> None:
    inner = gzip.compress(bytes(30_000_000))
    assert decode_in_pieces("gzip", gzip.compress(inner)) == inner


def test_turns_are_given_at_the_pace_and_not_beyond_the_wait() -> None:
    now = [0.0]
    pace = TokenBuckets(10, 3, lambda: now[0])
    assert [pace.turn("a", 9) for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    assert pace.turn("b", 9) == 0
    assert pace.turn("a", 0.1) == pytest.approx(0.3), "further away than that"
    assert pace.turn("a", 9) == pytest.approx(0.3), "what was not taken costs nothing"
    now[0] = 60
    assert [pace.turn("a", 9) for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])
