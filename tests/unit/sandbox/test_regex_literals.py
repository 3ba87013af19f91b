"""Search for regular expressions with the flag v: finds them, and nothing else, in any source."""

import pytest

from lodger.sandbox.regex_literals import line_with_flag_v


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (r'return /\p{L}/v.test("a")', 1),
        ("const a = 1;\n\nreturn /[[a-z]--[b]]/gv.exec(a)", 3),
        ("foo(/[/]/v)", 1),
        ("x => /b/v", 1),
        ("[/a/, /b/v]", 1),
        ("const o = { a:\n/b/v }", 2),
        ("`${/a/v.test(`x`)}`", 1),
        ("`a${ { b: 1 }.b }c` + /x/v", 1),
        ("new RegExp('a', 'gv')", 1),
        ('RegExp("a, b", "v")', 1),
        ("#!/usr/bin/v\n/a/v", 2),
    ],
)
def test_it_is_found_on_its_line(text: str, line: int) -> None:
    assert line_with_flag_v(text) == line


@pytest.mark.parametrize(
    "text",
    [
        "/a/giu",
        "x = a / b /v",
        "a = b\n/ c /v",
        "a++ /v/ 2",
        "(a) /b/v",
        "a[0] /b/v",
        "const u = 'https://x/v1/v'",
        "// /a/v\n/b/",
        "/* /a/v */",
        "`/a/v`",
        "`${a}/b/v`",
        "RegExp('a', 'i')",
        "RegExp('v')",
        "'unterminated\n/x/v",
        "/unterminated\n/x/v",
        "#!/usr/v\n1",
        "",
    ],
)
def test_nothing_else_is(text: str) -> None:
    assert line_with_flag_v(text) is None
