"""URL and URLSearchParams as in the URL standard."""

import json

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)


@pytest.mark.parametrize(
    ("text", "base", "href"),
    [
        ("https://example.com", None, "https://example.com/"),
        ("HTTPS://Example.COM:443/A/../b?q#f", None, "https://example.com/b?q#f"),
        ("http://user:p%20w@h:8080/x", None, "http://user:p%20w@h:8080/x"),
        ("../c?d", "http://h/a/b/", "http://h/a/c?d"),
        ("?q", "http://h/a/b#f", "http://h/a/b?q"),
        ("#g", "http://h/a/b?q#f", "http://h/a/b?q#g"),
        ("//other/x", "https://h/a", "https://other/x"),
        ("/root", "https://u:p@h:81/a/b", "https://u:p@h:81/root"),
        ("http:x", "http://h/a/b", "http://h/a/x"),
        ("  http://h/\ta\nb  ", None, "http://h/ab"),
        ("http:\\\\h\\a\\b", None, "http://h/a/b"),
        ("http://h/a b?c d#e f", None, "http://h/a%20b?c%20d#e%20f"),
        ("http://h/ä?ä#ä", None, "http://h/%C3%A4?%C3%A4#%C3%A4"),
        ("http://exämple.com/", None, "http://xn--exmple-cua.com/"),
        ("http://点看.com/", None, "http://xn--3pxu8k.com/"),
        ("http://0x7f.1/", None, "http://127.0.0.1/"),
        ("http://256/", None, "http://0.0.1.0/"),
        ("http://[::1]:80/", None, "http://[::1]/"),
        ("http://[1:0::0:1]/", None, "http://[1::1]/"),
        ("http://[::ffff:1.2.3.4]/", None, "http://[::ffff:102:304]/"),
        ("mailto:a@b?subject=x", None, "mailto:a@b?subject=x"),
        ("data:text/plain,hi there", None, "data:text/plain,hi there"),
        ("file:///C|/a/../b", None, "file:///C:/b"),
        ("file:///etc/./x/%2e%2e/y", None, "file:///etc/y"),
        ("web+demo:/.//not-a-host/", None, "web+demo:/.//not-a-host/"),
        ("foo://Host/a/../b", None, "foo://Host/b"),
        ("http://h/%zz%41", None, "http://h/%zz%41"),
        ("http://h?q", None, "http://h/?q"),
        ("", "http://h/a?q#f", "http://h/a?q"),
        ("a:b", "http://h/", "a:b"),
    ],
)
def test_href(run, text: str, base: str | None, href: str) -> None:
    arguments = json.dumps(text) + ("" if base is None else ", " + json.dumps(base))
    assert run(f"return new URL({arguments}).href").result == href


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "//h", "http://", "http://:80", "http://h:65536", "http://h:x", "http://a b/", "http://[::1",
        "http://[1::2::3]/", "http://1.2.3.256/", "http://u@/", "http://a<b/",
    ],
)  # fmt: skip
def test_no_url(run, text: str) -> None:
    reported = run(f"new URL({json.dumps(text)})")
    assert reported.error["name"] == "TypeError"
    assert reported.error["line"] == 1
    assert run(f"return [URL.canParse({json.dumps(text)}), URL.parse({json.dumps(text)})]").result == [False, None]


def test_parts(run) -> None:
    source = """
      const u = new URL("https://user:pass@host.example:8080/a/b?x=1&y=2#frag");
      return [u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash,
        u.origin, String(u), JSON.stringify({ u })];
    """
    href = "https://user:pass@host.example:8080/a/b?x=1&y=2#frag"
    assert run(source).result == [
        "https:", "user", "pass", "host.example:8080", "host.example", "8080", "/a/b", "?x=1&y=2", "#frag",
        "https://host.example:8080", href, json.dumps({"u": href}, separators=(",", ":")),
    ]  # fmt: skip


def test_setters(run) -> None:
    source = """
      const u = new URL("https://h/a");
      u.pathname = "x y"; u.search = "q=1"; u.hash = "z"; u.port = "99"; u.hostname = "other"; u.username = "me"; u.protocol = "http";
      const one = u.href;
      u.host = "[::1]:80"; u.search = ""; u.hash = ""; u.port = "70000"; u.protocol = "foo"; u.href = u.href + "!";
      return [one, u.href];
    """
    assert run(source).result == ["http://me@other:99/x%20y?q=1#z", "http://me@[::1]/x%20y!"]


def test_search_params_follow_the_url_and_back(run) -> None:
    source = """
      const u = new URL("http://h/?a=1&b=2");
      u.searchParams.append("c", "ä &=");
      const one = u.href;
      u.search = "?z=9";
      return [one, [...u.searchParams], u.searchParams === u.searchParams];
    """
    assert run(source).result == ["http://h/?a=1&b=2&c=%C3%A4+%26%3D", [["z", "9"]], True]


def test_search_params(run) -> None:
    source = """
      const p = new URLSearchParams("?a=1&a=2&b=%20+%zz&c");
      const q = new URLSearchParams([["x", 1], ["y", "z"]]);
      const r = new URLSearchParams({ k: "v w", l: "ü" });
      const out = [p.get("a"), p.getAll("a"), p.get("b"), p.get("c"), p.get("none"), p.has("a", "2"), p.size, String(q), String(r)];
      p.set("a", "3"); p.delete("b"); p.sort();
      return [...out, String(p), [...p.keys()], [...p.values()]];
    """
    assert run(source).result == [
        "1", ["1", "2"], "  %zz", "", None, True, 4, "x=1&y=z", "k=v+w&l=%C3%BC", "a=3&c=", ["a", "c"], ["3", ""],
    ]  # fmt: skip
