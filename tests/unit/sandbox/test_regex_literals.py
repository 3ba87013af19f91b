"""Search for regular expressions that runtime quickjs executes wrongly: finds them, and nothing else, in any source."""

import pytest

from lodger.sandbox.regex_literals import FLAG_V, OLD_CAPTURES, keeps_captures, misread_expression


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
    assert misread_expression(text) == (line, FLAG_V)


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
    assert misread_expression(text) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "((a)|(b))+", "(?:(a)|b)*", "(?:(a)|b){2}", "(?:(a)|b){1,}", "(?:(a)|b){0,2}", "(?:(a)|b)*?", "(?:(?<x>a)|b)+", "((?:(a)|b)c)*",
        "(?:((a)(c))|b)+", "(?:[)]|(a))+",
    ],
)  # fmt: skip
def test_a_group_that_keeps_an_earlier_round_is_found(pattern: str) -> None:
    assert misread_expression(f"\n/{pattern}/g") == (2, OLD_CAPTURES)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a|b)+", "(?:a|b)+(c)", "(?:(a)|b)", "(?:(a)|b)?", "(?:(a)|b){1}", "(?:(a)|b){0,1}", "(?:(?:(a)|b)?c)*", "((?:a|b)(c))+",
        "(a)*|(b)*", r"\((a)|b\)+", "[(](a)|b[)]+", r"(?:(`+)a\1|b)*", r"(?:(?<q>['\"])a\k<q>|b)*", "(?:(?:a)|b)+", "(?:(?=a)|b)+",
        "((", "))+", "(?:",
    ],
)  # fmt: skip
def test_a_group_that_keeps_nothing_is_not(pattern: str) -> None:
    assert not keeps_captures(pattern)
