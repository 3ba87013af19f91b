"""Standard modules, as a script that imports them (quickjs-native takes a single file); and what is sent to a worker."""

import json
from typing import Any

import pytest

from lodger.engine.trials.trial import try_script
from lodger.sandbox.job import Bundle
from lodger.sandbox.limits import Limits
from lodger.sandbox.workers import codec
from lodger.stdlib import npm_packages, standard_modules

START = """
import { parse, stringify } from "csv";
import { decimal, Decimal } from 'decimal';
import { html, raw, table } from "html";
import { render } from "markdown";
import * as stats from "stats";
const text = (value) => JSON.stringify(value);
const error = (act) => { try { return "no error: " + text(act()); } catch (e) { return `${e.name}: ${e.message}`; } };
"""
CASES: dict[str, Any] = {
    # csv
    r"""parse('a,"b ""c""\r\nd",\r\n1,2,3\n\n')""": [["a", 'b "c"\nd', ""], ["1", "2", "3"]],
    """parse("\ufeffx;y\\n1;2\\n\\n", { separator: ";", header: true })""": [{"x": "1", "y": "2"}],
    """["a\\n\\"b", "a,b\\n1", "a,a\\n1,2"].map((t) => error(() => parse(t, { header: true })).split(":")[0])""": ["SyntaxError"] * 3,
    """["a,b\\n1,2\\n3", 'a,b\\n1,2\\n"3'].map((t) => error(() => parse(t, { header: true })).split(":")[2])""": [" row 3"] * 2,
    """error(() => parse("a", { delimiter: ";" }))""": 'TypeError: csv.parse: there is no option "delimiter"; it has separator, header',
    """error(() => parse("a", { headers: true }))""": 'TypeError: csv.parse: there is no option "headers"; it has separator, header',
    """stringify([{ a: 1, b: 'x"y' }, { a: null, b: " z" }])""": 'a,b\r\n1,"x""y"\r\n," z"\r\n',
    """stringify([{ a: 1 }, { b: 2 }])""": "a,b\r\n1,\r\n,2\r\n",
    """stringify([["=1+1", -1, new Date(0)]], { formulas: "text" })""": '"\'=1+1",-1,1970-01-01T00:00:00.000Z\r\n',
    """stringify([["=1+1\\nx", "＝1", "\\n-1", "a=1"]], { formulas: "text" })""": '"\'=1+1\nx","\'＝1","\'\n-1",a=1\r\n',
    r"""stringify([{ a: 1 }, JSON.parse('{"constructor": 2, "__proto__": 3}')])""": "a,constructor,__proto__\r\n1,,\r\n,2,3\r\n",
    """error(() => stringify([["=1"]], { formulas: "texts" }))""": 'TypeError: csv.stringify: formulas must be "keep" or "text"',
    """[new Map(), {}, () => 1].map((cell) => error(() => stringify([{ cell }])).slice(0, 24))""": ["TypeError: csv.stringify"] * 3,
    """["x", [1], [[1], {}], {}].map((rows) => error(() => stringify(rows)).slice(0, 24))""": ["TypeError: csv.stringify"] * 4,
    """error(() => parse("__proto__\\n1", { header: true }))""": "SyntaxError: csv.parse: no column may have the name __proto__",
    """error(() => parse("a", { separator: '"' })).slice(0, 20)""": "TypeError: csv.parse",
    """stringify([{ n: decimal("1.50"), n2: new Date(0) }]).split(",").length""": 3,
    # decimal
    """text(decimal("0.1").plus("0.2"))""": '"0.3"',
    """String(decimal("-12.50").times("3").minus(1)) + " " + decimal(10n ** 30n)""": "-38.5 1" + "0" * 30,
    """decimal("0.005").toFixed(2) + decimal("0.015").toFixed(2) + decimal(5).toFixed(2)""": "0.000.025.00",
    # html
    """String(html`<p title="${'"'}">${["<b>", html`<i>${1}</i>`, null, raw("<br>")]}</p>`)""":
        '<p title="&quot;">&lt;b&gt;<i>1</i><br></p>',
    """String(html`${{ toString: () => "<x>" }}`)""": "&lt;x&gt;",
    """String(table([{ a: "<", b: 2 }]))""":
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>&lt;</td><td>2</td></tr></tbody></table>",
    # markdown
    """render("# A *b*\\n\\nx **y** `<z>`\\n\\n> q")""":
        "<h1>A <em>b</em></h1>\n<p>x <strong>y</strong> <code>&lt;z&gt;</code></p>\n<blockquote>\n<p>q</p>\n</blockquote>\n",
    """render("[a](https://x.example/?q=1&r) [b](javascript:alert(1)) ![i](data:x) <script>x</script>\\n\\n<i>")""":
        '<p><a href="https://x.example/?q=1&amp;r">a</a> b i &lt;script&gt;x&lt;/script&gt;</p>\n&lt;i&gt;',
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


#: An import of each package as its documentation has it, and what an expression with it gives.
PACKAGES: dict[str, tuple[str, Any]] = {
    'import Papa from "papaparse";': ('Papa.parse("a,b\\n1,2", { header: true }).data', [{"a": "1", "b": "2"}]),
    'import { unparse } from "papaparse";': ("unparse([[1, 'x,y']])", '1,"x,y"'),
    'import { Decimal } from "decimal.js";': ('new Decimal("0.1").plus("0.2")', "0.3"),
    'import DecimalJs from "decimal.js";': ("DecimalJs === Decimal", True),
    'import { marked } from "marked";': ('marked.parse("**y**")', "<p><strong>y</strong></p>\n"),
    'import { XMLParser } from "fast-xml-parser";': (
        """new XMLParser({ removeNSPrefix: true }).parse('<r xmlns:dc="u"><dc:date>x</dc:date></r>')""", {"r": {"date": "x"}}),
    'import { parse as parseHtml } from "node-html-parser";': (
        """parseHtml("<ul><li class=a>x<li>y</ul>").querySelectorAll("li.a").map((e) => e.text)""", ["x"]),
    'import { format, addMonths } from "date-fns";': ('format(addMonths(new Date(0), 1), "yyyy-MM-dd")', "1970-02-01"),
    'import { addDays } from "date-fns/addDays";': ("addDays(new Date(0), 1)", "1970-01-02T00:00:00.000Z"),
    'import { z } from "zod";': ('z.object({ a: z.number() }).safeParse({ a: "x" }).error.issues[0].path', ["a"]),
    'import * as z4 from "zod/v4";': ("z4.z === z", True),
    'import Mustache from "mustache";': ('Mustache.render("Hi {{n}}", { n: "<A>" })', "Hi &lt;A&gt;"),
    'import _, { groupBy } from "lodash-es";': ("[groupBy([1, 2], (n) => n % 2), _.chunk([1, 2], 2)]", [{"0": [2], "1": [1]}, [[1, 2]]]),
    'import sortBy from "lodash-es/sortBy.js";': ("sortBy([3, 1, 2])", [1, 2, 3]),
    'import { median } from "simple-statistics";': ("median([3, 1, 2])", 2),
    'import YAML from "yaml";': ('YAML.parse("a: [1, 2]")', {"a": [1, 2]}),
}  # fmt: skip


def test_packages_are_imported_by_their_names() -> None:
    script = (
        "\n".join(PACKAGES) + "\nexport default () => [" + ", ".join(text for text, _found in PACKAGES.values()) + "];"
    )
    ended = try_script(script, None, Limits(cpu_ms=10_000)).finished
    assert ended.error is None, ended.error
    assert json.loads(ended.result or "null") == [found for _text, found in PACKAGES.values()]
    assert len(npm_packages.imported()) >= 10
    for name in npm_packages.imported():
        assert any(f'"{name}"' in each for each in PACKAGES), name


@pytest.mark.parametrize(
    ("name", "advice"),
    [("zod/mini", "import from 'zod' itself"), ("lodash-es/nope.js", "import from 'lodash-es' itself"), ("@a/b/c", "install @a/b, then"),
     ("date-fns/locale/de", "import from 'date-fns'"),
     ("papaprse", "did you mean 'papaparse'?"),
     ("https://esm.sh/lodash", "nothing is loaded from the network"), ("npm:zod", "nothing is loaded from the network"),
     ("./data.csv", "write the .csv as a text in a .js file"),
     ("left-pad", "npm install left-pad, then lodger bundle")],
)  # fmt: skip
def test_what_does_not_come_with_lodger_is_refused_with_what_to_do(name: str, advice: str) -> None:
    ended = try_script(f'import x from "{name}";\nexport default () => x;', None, Limits()).finished
    assert ended.error is not None
    assert advice in ended.error.message


def test_names_that_packages_do_not_export_are_no_modules() -> None:
    wanted = {"date-fns/addDays", "lodash-es/sortBy.js"}
    names = "".join(f"import '{name}';" for name in (*wanted, "date-fns/nope", "lodash-es/a1", "lodash-es/a2.js"))
    assert {*standard_modules.imported({"main.js": names})} == {*wanted, "date-fns", "lodash-es"}


def test_the_lock_file_and_the_table_pin_the_same() -> None:
    lock = json.loads((npm_packages.FOLDER / "packages" / "package-lock.json").read_text())["packages"]
    for name in npm_packages.imported():
        about, locked = npm_packages.table()[name], lock[f"node_modules/{name}"]
        assert (about["version"], about["integrity"], about["licence"]) == (
            locked["version"],
            locked["integrity"],
            locked["license"],
        )


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
        assert set(standard_modules.imported({"main.js": first, "b.js": second})) == {"csv", "papaparse"}
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
