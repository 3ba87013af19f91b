"""Standard modules, as a script that imports them (quickjs-native takes a single file); and what is sent to a worker."""

from typing import Any

import pytest

from lodger.sandbox.job import Bundle
from lodger.sandbox.workers import codec
from lodger.stdlib import standard_modules

START = """
import { parse, stringify } from "csv";
import { decimal, Decimal } from 'decimal';
import { html, raw, table } from "html";
import { render } from "markdown";
import { parseHtml, parseXml } from "markup";
import * as stats from "stats";
const text = (value) => JSON.stringify(value);
const error = (act) => { try { return "no error: " + text(act()); } catch (e) { return `${e.name}: ${e.message}`; } };
"""
CASES: dict[str, Any] = {
    # csv
    r"""parse('a,"b ""c""\r\nd",\r\n1,2,3\n\n')""": [["a", 'b "c"\r\nd', ""], ["1", "2", "3"], [""]],
    """parse("\ufeffx;y\\n1;2", { separator: ";", header: true })""": [{"x": "1", "y": "2"}],
    """error(() => parse('a\\n"b'))""": "SyntaxError: csv.parse: the quote of row 2 (character 2) is never closed",
    """error(() => parse('a,b\\n1', { header: true }))""": "SyntaxError: csv.parse: row 2 has 1 fields, the first row has 2",
    """error(() => parse('a,a', { header: true }))""": 'SyntaxError: csv.parse: two columns are named "a"',
    """error(() => parse('"a"b'))""": "SyntaxError: csv.parse: text after the closing quote of row 1 (character 3)",
    """stringify([{ a: 1, b: 'x"y' }, { a: null, b: " z" }])""": 'a,b\r\n1,"x""y"\r\n," z"\r\n',
    """stringify([["=1+1", -1, new Date(0)]], { formulas: "text" })""": "'=1+1,-1,1970-01-01T00:00:00.000Z\r\n",
    """text(parse(stringify([["a,b", ""], [""], ["\\n"]])))""": '[["a,b",""],[""],["\\n"]]',
    # decimal
    """text(decimal("0.1").plus("0.2"))""": '"0.3"',
    """String(decimal("-12.50").times(3n).minus(1))""": "-38.50",
    """String(decimal("1e3").dividedBy(7, 4))""": "142.8571",
    """["half-even","half-up","half-down","up","down","ceiling","floor"].map((r) => decimal("-2.5").toFixed(0, r)).join(" ")""":
        "-2 -3 -2 -3 -2 -2 -3",
    """decimal("0.005").toFixed(2) + decimal("0.015").toFixed(2) + decimal(5).toFixed(2)""": "0.000.025.00",
    """decimal("100.00").allocate([1, 1, 1]).join(" ")""": "33.34 33.33 33.33",
    """decimal("-0.05").allocate([1, 0, 1]).join(" ")""": "-0.03 0.00 -0.02",
    """decimal("2.50").compare("2.5") + decimal(2).compare(10)""": -1,
    """error(() => decimal(1).dividedBy(0, 2))""": "RangeError: division by zero",
    """error(() => decimal("1,5"))""": 'TypeError: "1,5" is not a decimal number',
    """error(() => decimal(1) + 1)""": "TypeError: a Decimal has no operators: use plus, minus, times and compare",
    """error(() => decimal("1e9999"))""": "RangeError: a decimal has at most 1000 digits",
    """error(() => [1, 1].reduce((n) => n.times(n), decimal("9".repeat(600))))""": "RangeError: a decimal has at most 1000 digits",
    # html
    """String(html`<p title="${'"'}">${["<b>", html`<i>${1}</i>`, null, raw("<br>")]}</p>`)""":
        '<p title="&quot;">&lt;b&gt;<i>1</i><br></p>',
    """String(html`${{ toString: () => "<x>" }}`)""": "&lt;x&gt;",
    """String(table([{ a: "<", b: 2 }]))""":
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>&lt;</td><td>2</td></tr></tbody></table>",
    # markdown
    """render("# A *b*\\n\\nx **y** `<z>`\\n\\n- one\\n- two\\n\\n> q")""":
        "<h1>A <em>b</em></h1>\n<p>x <strong>y</strong> <code>&lt;z&gt;</code></p>\n<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n"
        "<blockquote>\n<p>q</p>\n</blockquote>",
    """render("[a](https://x.example/?q=1&r) [b](javascript:alert(1)) <script>")""":
        '<p><a href="https://x.example/?q=1&amp;r">a</a> [b](javascript:alert(1)) &lt;script&gt;</p>',
    """render("```\\n<b>\\n```\\n1. x\\n---")""": "<pre><code>&lt;b&gt;</code></pre>\n<ol>\n<li>x</li>\n</ol>\n<hr>",
    # markup
    """text(parseXml('<?xml version="1.0"?><a x="1 &amp; 2"><b>t<![CDATA[<&]]></b><!-- c --><c/>&#x41;&lt;</a>'))""":
        '{"name":"a","attributes":{"x":"1 & 2"},"children":[{"name":"b","attributes":{},"children":["t<&"]},'
        '{"name":"c","attributes":{},"children":[]},"A<"]}',
    """parseXml('<f xmlns:d="u"><d:i n="1">x</d:i><g><d:i n="2">y</d:i></g></f>').findAll("d|i").map((e) => e.attributes.n + e.text)""":
        ["1x", "2y"],
    """error(() => parseXml("<a>\\n<b></a>"))""": "SyntaxError: parseXml: line 2: </a> stands where </b> is expected",
    """error(() => parseXml('<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>'))""":
        "SyntaxError: parseXml: line 1: declarations such as <!DOCTYPE> are not read",
    """["<a>&e;</a>", "<a><b/>", "<a/><b/>", "x<a/>", "<a x=1/>", "<a x='1' x='2'/>", "<a b='<'/>", "", "<a>&#0;</a>", "<a", "<a><!-- </a>",
        "<a>".repeat(300)].map((bad) => { try { parseXml(bad); return bad; } catch (e) { return e.name; } })""": ["SyntaxError"] * 12,
    """parseHtml("<ul><li>a<li>b<ul><li>c</ul><li>d</ul><p>x<p>y<div>z").findAll("ul > li, p, div").map((e) => e.text)""":
        ["a", "bc", "c", "d", "x", "y", "z"],
    """parseHtml('<table class="prices big"><tr><td>1<td data-x=2>&euro;3&nope;<tr><th>h</table><br>after').findAll("table.prices tr").map(
        (row) => row.elements.map((cell) => cell.name + cell.text))""": [["td1", "td€3&nope;"], ["thh"]],
    """parseHtml('<A HREF="/x?a=1&amp;b" id=k>t</A><script>if (a < b) "</p>"</script><title>a &lt; b</title>')
        .findAll("#k, script, title").map((e) => [e.name, e.attributes.href ?? null, e.text])""":
        [["a", "/x?a=1&b", "t"], ["script", None, 'if (a < b) "</p>"'], ["title", None, "a < b"]],
    """["[href]", "a[href^='/x']", 'a[href$="b"]', "a[href*=zzz]", "p > a", "div a", "body>p a"].map(
        (s) => parseHtml("<body><p><a href=/xb>1</a></p><div><i><a href=q>2</a></i></div>").findAll(s).map((e) => e.text).join())""":
        ["1,2", "1", "1", "", "1", "2", "1"],
    """["", "a,,b", "a >", "> a", "a:hover", "[x", "a b!", 7].map(
        (s) => error(() => parseHtml("<a>").find(s)).split(":")[0])""": ["SyntaxError"] * 8,
    """["<", "</", "<!--", "<a b='", "<script>", "<p></b></p></p>", "<<<a>", "</p", "\\u0000<x>"].map(
        (t) => typeof parseHtml(t).text)""": ["string"] * 9,
    """parseHtml("<div>".repeat(100000) + "x").text""": "x",
    """parseHtml("<a>x</a>").find("b")""": None,
    # stats
    """[stats.sum([1e16, 1, -1e16]), stats.mean([1, 2, 3, 4]), stats.median([3, 1, 2]), stats.quantile([1, 2, 3, 4], 0.25)]""":
        [1, 2.5, 2, 1.75],
    """[stats.variance([2, 4, 4, 4, 5, 5, 7, 9]).toFixed(4), stats.stdev([1, 3]).toFixed(4)]""": ["4.5714", "1.4142"],
    """stats.linear([[0, 1], [1, 3], [2, 5]])""": {"slope": 2, "intercept": 1, "r2": 1},
    """error(() => stats.mean([]))""": "RangeError: at least 1 number is needed, there are 0",
    """error(() => stats.mean([1, NaN]))""": "TypeError: value 1 is not a finite number",
}  # fmt: skip


def test_standard_modules(run, subtests: pytest.Subtests) -> None:
    script = START + "export default () => [" + ",\n".join(f"() => {case}" for case in CASES) + "].map((act) => act());"
    reported = run({"main.js": script, **standard_modules.imported({"main.js": script})}, cpu_ms=30_000)
    assert reported.outcome == "ok", reported.error
    for (case, expected), found in zip(CASES.items(), reported.result, strict=True):
        with subtests.test(case):
            assert found == expected


def test_sources_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    pattern = standard_modules.IMPORT

    class Noted:
        def findall(self, text: str) -> list[str]:
            searched.append(text)
            return pattern.findall(text)

    monkeypatch.setattr(standard_modules, "IMPORT", Noted())
    first, second = 'import "csv"; // once', "export default 1; // once"
    for _ in range(3):
        assert set(standard_modules.imported({"main.js": first, "b.js": second})) == {"csv"}
    assert sorted(text for text in searched if "once" in text) == sorted((first, second))


def test_a_worker_is_sent_what_a_script_imports_and_no_more() -> None:
    def sent(**files: str) -> bytes:
        return codec.bundle(Bundle({name.replace("_", "."): text for name, text in files.items()}))

    own = standard_modules.source("html").encode()
    assert own in sent(main_js='import { html } from "html"')
    assert own in sent(main_js="await import('markdown')"), "what a standard module imports"
    assert own in sent(main_js="import './a.js'", a_js="export * from'html'")
    assert own not in sent(main_js="import './html.js'", html_js="export const html = 1")
    assert own not in sent(main_js="const html = 'html'")
    assert set(
        standard_modules.imported({"main.js": "".join(f'import "{n}";' for n in standard_modules.NAMES)})
    ) == set(standard_modules.NAMES)
