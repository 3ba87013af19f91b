"""What reads tenants' texts in the engine's process takes time in proportion to their length."""

import time
from collections.abc import Callable

import pytest

from lodger.sandbox.job import ScriptError
from lodger.sandbox.regex_literals import misread_expression
from lodger.sandbox.source_faults import Outline, explained, faults, idle, no_function
from lodger.sandbox.source_names import unknown_names
from lodger.stdlib import standard_modules

READERS: dict[str, Callable[[str], object]] = {
    "names": lambda text: next(unknown_names({"main.js": text}), None),
    "faults": lambda text: next(faults({"main.js": text}), None),
    "idle": lambda text: idle({"main.js": text}),
    "outline": lambda text: (Outline("export " + text).has_default, Outline("export " + text).is_module),
    "imports": lambda text: Outline(text).imports,
    "flag v": lambda text: misread_expression("RegExp " + text),
    "standard": lambda text: standard_modules.imported({"main.js": text}),
    "no function": lambda text: no_function({"main.js": "export default x;" + text}),
    "no function in a list": lambda text: no_function({"main.js": f"export {{{text}}};\nexport default main()"}),
    "no function of another": lambda text: no_function({"main.js": f"export {{{text}}} from './a.js'"}),
    "exports": lambda text: next(faults({"main.js": 'import { a } from "./a.js"', "a.js": text}), None),
    "end": lambda text: explained(ScriptError("SyntaxError", "''", file="main.js", line=1), {"main.js": text}),
    "advice": lambda text: explained(ScriptError("SyntaxError", "x", file="main.js", line=1), {"main.js": text}),
}
UNITS = (
    r"""
import |import\n|import a |from "a";|import type |import type a; |export { |export { as default |export { as as |export default |
export default function |export default async |export default script( |export default ({ |function|function a() |
async function a()\n|class a |class a extends b {} ;|const a |const a\n|const a = async |const a = b |const a = function |
const a = (b) |RegExp( |RegExp("' |import { |export const a,\n|
((|{{|[{a=|a<|a: |require ( |exports. |\t|a|a as default,
""".replace("\n", "")
    .replace("\\n", "\n")
    .replace("\\t", "\t")
)


def seconds(read: Callable[[str], object], unit: str, length: int) -> float:
    """Return the CPU seconds of reading a text of repeated pieces."""
    text = unit * (length // len(unit))
    began = time.process_time()
    read(text)
    return time.process_time() - began


@pytest.mark.parametrize("reader", READERS)
def test_time_grows_with_the_length(reader: str) -> None:
    read = READERS[reader]
    for unit in UNITS.split("|"):
        short = seconds(read, unit, 3000)
        # Eight times the length: what goes back over the text takes 64 times as long.
        assert seconds(read, unit, 24000) < 24 * short + 0.1, unit


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import type A from 'a'\nimport B from 'b'", ["b"]),
        ("export type { A } from 'a'; export { B } from 'b'", ["b"]),
        ("import type A from\n'a'; const b = import('b')", ["b"]),
        ("import 'a'\nexport * from 'b'", ["a", "b"]),
        ("import type from 'a'", []),
    ],
)
def test_imports_are_those_that_are_not_of_types_only(source: str, names: list[str]) -> None:
    assert [name for name, *_ in Outline(source).imports] == names


@pytest.mark.parametrize(
    ("source", "runs_nothing"),
    [
        ("function a(b, c) { return 1 }", True),
        ("async function * a () {}", True),
        ("import a from './a.js'\nconst b = async (x) => a(x), c = 1;", True),
        ("class A extends B { m() {} }\nlet f = function (a) { return a }", True),
        ("const f = x => x", True),
        ("'use strict';\nfunction f() {}", True),
        ('"use strict"', True),
        ('"text".length; function f() {}', False),
        ("function a() {}\na()", False),
        ("function a() {}\nimport('./a.js')", False),
        ("const f = (x) => { return x }\nawait f(1)", False),
    ],
)
def test_a_file_that_only_declares(source: str, runs_nothing: bool) -> None:
    assert (idle({"main.js": source}) is not None) is runs_nothing


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("export default 5", "a number"),
        ("export default { async f() {} };", "an object"),
        ("export default [1]", "a list"),
        ("export default class A { m() {} }", "a class"),
        ("const a = 1;\nconst h = { a };\nexport default h;", "an object"),
        ("class A {}\nexport { A as default }", "a class"),
        ("const a = 1;\nexport { b, a as default };", "a number"),
        ("export { a as default } from './a.js'", None),
        ("export default async function* main() {}", "a generator function"),
        ("export default null\nconst a = 1", "a value"),
        ("export default { a: 1 } as Config;", "an object"),
        ("export default new Proxy(() => 1, {})", None),
        ("export default 5 ? () => 1 : 2", None),
        ("const f = () => 1;\nexport default [f]\n[0]", None),
        ("const a = { f() {} };\nexport default a\n.f", None),
        ("class A {}\nA = () => 1;\nexport { A as default }", None),
        ("class A {}\n[A] = [() => 1];\nexport default A", None),
        ("export { A as default };\nclass A extends B {}\nnew A().f();", "a class"),
        ("const a = 1;\nexport { a as default } from './a.js'", None),
        ("export { main as default };\nasync function main() {}", None),
        ("return `\nexport default 5\n`", None),
        ("export default { f() {} }.f", None),
        ("const h = () => 1;\nexport default h", None),
        ("export default script(async () => 1)", None),
        ("export default (run) => ({ a: 1 })", None),
    ],
)
def test_a_default_export_that_is_no_function(source: str, shown: str | None) -> None:
    found = no_function({"main.js": source})
    assert (found and found.message.split(",")[0]) == (shown and f"the default export is {shown}")


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("export const taxes = 1;", "util.js does not export 'tax': did you mean taxes?"),
        ("const tax = 1;\nexport { tax as vat };", "util.js does not export 'tax': it exports vat"),
        ("const tax = 1;", "util.js does not export 'tax': it exports nothing"),
        ("export async function* tax() {}", None),
        ("const a = 1;\nexport { a as tax };", None),
        ("export const a = { b: 1 },\n  tax = 2;", None),
        ("export * from './other.js';", None),
    ],
)
def test_a_missing_export_is_told_with_its_place(module: str, message: str | None) -> None:
    files = {"main.js": 'import {\n  tax } from "./util.js";', "util.js": module, "other.js": "export const tax = 1"}
    assert [(each.message, each.line, each.column) for each in faults(files)] == ([(message, 2, 3)] if message else [])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("return [1, 2", "the file ends too early: the [ of line 1, column 8 is not closed"),
        ("export default () => {\n  f(`${a}`", "the file ends too early: the ( of line 2, column 4 is not closed"),
        ("return 1 /* a", "the file ends too early: the /* of line 1, column 10 is not closed"),
        ("return `a", "the file ends too early: the ` of line 1, column 8 is not closed"),
        ("return 'a", "the line ends too early: the ' of line 1, column 8 is not closed"),
        ("return 1 + '}'", "unexpected token: ''"),
        ("export default () => {\n}\nf(", "the file ends too early: the ( of line 3, column 2 is not closed"),
    ],
)
def test_what_is_not_closed_is_named(source: str, message: str) -> None:
    error = explained(ScriptError("SyntaxError", "unexpected token: ''", file="a.js", line=1), {"a.js": source})
    assert error
    assert error.message == message


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("module['exports'] = () => 1", [(1, 1)]),
        ("1;\nexports['x'] = 1; exports.y = 2", [(2, 1)]),
        ("module.exports.run = () => 1", [(1, 1)]),
        ("const a = require(`./a`)", [(1, 11)]),
        ("var exports = {}; exports.a = 1", []),
        ("((exports) => { exports.a = 1 })({})", []),
        ("const same = module.exports == 1", []),
    ],
)
def test_commonjs_in_other_spellings(source: str, places: list[tuple[int, int]]) -> None:
    assert [(each.line, each.column) for each in faults({"main.js": source})] == places


def test_modules_of_other_platforms_at_run_time_say_what_to_write() -> None:
    modules = {"main.js": "return process.env", "other.js": ""}
    for said, advice in [
        ("cannot find module 'node:fs'; this script has main.js", "a script does not run in Node.js"),
        ("thing is not defined", "thing is not defined"),
    ]:
        told = explained(ScriptError("ReferenceError", said, file="main.js", line=1), modules)
        assert told is not None
        assert advice in told.message


def test_what_node_requires_is_told_to_be_absent() -> None:
    (fault,) = faults({"main.js": "const fs = require('node:fs');"})
    assert fault.message.startswith(
        "a script has no require(), and cannot find module 'node:fs': a script does not run in Node.js"
    )


def test_names_that_packages_do_not_export_are_told() -> None:
    for source, message in [
        ("import { Zod } from 'zod'", "zod does not export 'Zod': did you mean"),
        ("import Papa, { parze } from 'papaparse'", "papaparse does not export 'parze': "),
        ("import { csv } from 'csv'", "csv does not export 'csv': it exports "),
        ("import { z as y } from 'zod'; import { groupBy } from 'lodash-es'; import { parse } from 'yaml'", None),
        (
            "import { parse, stringify } from 'csv'; import { decimal, Decimal } from 'decimal'; import { html } from 'html'",
            None,
        ),
        (
            "import { render } from 'markdown'; import { mean } from 'stats'; import { test, expect } from 'testing'",
            None,
        ),
        (
            "import { Decimal } from 'decimal.js'; import { marked } from 'marked'; import { render } from 'mustache'",
            None,
        ),
        ("import { XMLParser } from 'fast-xml-parser'; import { format } from 'date-fns'", None),
        ("import { parse } from 'node-html-parser'; import { linearRegression } from 'simple-statistics'", None),
    ]:
        told = [each.message for each in faults({"main.js": source})]
        assert len(told) == (message is not None), (source, told)
        assert message is None or message in told[0]
