"""Errors have the author's file, line and column, and no frames of the library."""

import re
from pathlib import Path

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)


@pytest.mark.parametrize(
    ("source", "name", "message", "line", "column"),
    [
        ("export default () => {\n  throw new TypeError('in')\n}", "TypeError", "in", 2, 13),
        (
            "export default async () => {\n  await null\n  undefinedFunction()\n}",
            "ReferenceError",
            "undefinedFunction is not defined",
            3,
            3,
        ),
        ("\n\nnull.x", "TypeError", "cannot read property 'x' of null", 3, 1),
        ("throw new Error('first line')", "Error", "first line", 1, 11),
        ("const f = () => {\n  throw new RangeError('deep')\n}\nawait [1].map(f)", "RangeError", "deep", 2, 13),
        ("throw Object.assign(new Error('q'), { name: 'Custom' })", "Custom", "q", 1, 21),
        ("class My extends Error {}\nthrow new My('m')", "Error", "m", 1, 1),
    ],
)
def test_place(run, source: str, name: str, message: str, line: int, column: int) -> None:
    reported = run(source)
    error = reported.error
    assert reported.outcome == "script_error"
    assert (error["name"], error["message"]) == (name, message)
    assert (error["file"], error["line"]) == ("main.js", line)
    if column != 21 and name != "Error":
        assert error["column"] == column
    assert f"main.js:{line}:" in error["stack"]
    assert "eval_script" not in error["stack"]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("let a = 1;\nlet b = = 2;", 2),
        ("export default () => {\n  const x = ;\n}", 2),
        ("return 1 /* open", 1),
        ("const f = () => { await 1 }", 1),
        ("export default () => {\n\n", 3),
        ("if (true) {\n  return 1\n", 3),
        ("import x from './lib.js'\nlet y = = 1", 2),
    ],
)
def test_syntax(run, source: str, line: int) -> None:
    reported = run({"main.js": source, "lib.js": "export default 1"})
    assert reported.outcome == "compile_error"
    assert reported.error["name"] == "SyntaxError"
    assert (reported.error["file"], reported.error["line"]) == ("main.js", line)


def test_nothing_of_a_broken_module_ran(run) -> None:
    assert run({"main.js": "console.log('ran');\nimport './lib.js'", "lib.js": "let = ="}).logs == []


def test_a_syntax_error_at_run_time_is_the_scripts_own(run) -> None:
    reported = run("\nJSON.parse('{')")
    assert reported.outcome == "script_error"
    assert reported.error["line"] == 2


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("export default 5", 1),
        ("export const a = 1;\nexport const b = 'default';\n\nexport default class {}", 4),
        ("const n = null;\nexport { n as default };", 2),
        ("\nexport default function* () { yield 1 }", 2),
        ("\nexport default async function* () {}", 2),
    ],
)
def test_a_default_export_that_is_no_function_has_its_line(run, source: str, line: int) -> None:
    reported = run(source)
    assert reported.error["message"].endswith("export a function, which is called once per run")
    assert reported.error["line"] == line


#: Statements, each behind the message of what they throw.
MESSAGES = re.findall(
    r"^// (.*)\n((?:(?!// ).*\n)+)", (Path(__file__).parent / "error_messages.js").read_text(), re.MULTILINE
)


def test_messages_name_what_was_called_what_was_undefined_and_the_text(run) -> None:
    assert len(MESSAGES) == 54
    for message, source in MESSAGES:
        seen = run(
            f"try {{ await (async () => {{\n{source}\n}})() }} catch (error) {{ return [error.message, error.stack] }}"
        ).result
        assert seen[0] == message, source
        assert seen[1].split("\n")[0].endswith(f"Error: {message}"), source
        assert all(line.startswith("    at ") for line in seen[1].split("\n")[1:])
        assert "eval_script" not in seen[1]
    # The engine has no place for what is iterated or destructured.
    for source, place in [
        ("const o = {};\n\nfor (const x of o.rows) {\n}", (3, 17)),
        ("const o = {};\nconst r = JSON.parse('{}');\nreturn {\n  all: [...r.rows],\n};", (4, 12)),
        ("const o = {};\n\nconst { a } = o.x;", (3, 7)),
        ("function f(x,\n  { a },\n) {}\nf();", (2, 3)),
    ]:
        reported = run(source)
        assert (reported.error["line"], reported.error["column"]) == place, source
    reported = run("const o = {};\nconst shown = o.list === 1;\nconst first = { a: 1 };\nreturn [\n  o.a.length,\n]")
    assert (reported.error["line"], reported.error["message"]) == (
        5,
        "cannot read property 'length' of undefined: o.a is undefined",
    )


def test_a_stack_begins_with_name_and_message_when_it_was_made(run) -> None:
    seen = run(
        "class My extends Error { constructor(m) { super(m); this.name = 'My' } }\n"
        "const plain = { name: 'X', message: 'm' }; Error.captureStackTrace(plain);\n"
        "return [new Error('a').stack, new My('b').stack, new TypeError('').stack, plain.stack, Error.prepareStackTrace === undefined]"
    ).result
    assert [stack.split("\n")[0] for stack in seen[:4]] == ["Error: a", "Error: b", "TypeError", "X: m"]
    assert seen[4]


@pytest.mark.parametrize(
    ("thrown", "message"),
    [
        ("null", "threw null"),
        ("undefined", "threw undefined"),
        ("'text'", "threw 'text'"),
        ("Symbol('s')", "threw Symbol(s)"),
        ("{ a: 1 }", "threw { a: 1 }"),
        (
            "new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 }, getPrototypeOf() { throw 3 } })",
            "threw [unreadable]",
        ),
        ("{ get message() { throw 1 }, stack: 5 }", ""),
        ("Promise.reject(7)", "threw Promise { await it to see its value }"),
    ],
)
def test_whatever_is_thrown(run, thrown: str, message: str) -> None:
    for reported in (run(f"throw {thrown}"), run(f"export default async () => {{ throw {thrown} }}")):
        assert reported.outcome == "script_error"
        assert reported.error["message"] == message


def test_a_rejected_promise(run) -> None:
    assert run("await Promise.reject(new Error('later'))").error["message"] == "later"
    assert run("return Promise.reject(new Error('later'))").error["message"] == "later"


def test_a_long_message_is_cut(run) -> None:
    assert len(run("throw new Error('x'.repeat(1e6))").error["message"]) == 4096


CARRIED = """
const io = Object.assign(new RangeError("disk"), { code: "EIO" });
const retry = Object.assign(new Error("retry", { cause: io }), { status: 503, list: [1, { a: 2 }], loose: NaN });
throw new AggregateError([retry, "plain"], "both failed", { cause: { reason: 7 } });
"""


def test_an_error_keeps_its_fields_causes_and_errors(run) -> None:
    details = run(CARRIED).error["details"]
    assert details["cause"] == "{ reason: 7 }"
    first, second = details["errors"]
    assert (first["name"], first["message"], second) == ("Error", "retry", "plain")
    assert first["stack"].startswith("    at ")
    assert {name: first["details"][name] for name in ("status", "list", "loose")} == {
        "status": 503,
        "list": "[ 1, { a: 2 } ]",
        "loose": "NaN",
    }
    assert first["details"]["cause"]["message"] == "disk"
    assert first["details"]["cause"]["details"] == {"code": "EIO"}
    assert "details" not in run("throw new Error('bare')").error
    chained = run(
        "let e = new Error('0'); for (let i = 1; i < 5000; i++) e = new Error('x'.repeat(900), { cause: e }); throw e"
    ).error
    assert len(str(chained["details"])) < 16_000


def test_names_of_fields_are_cut_to_whole_characters(run) -> None:
    details = run("throw Object.assign(new Error('x'), { ['a'.repeat(59) + '\\u{1f600}']: '\\ud800' })").error[
        "details"
    ]
    assert details == {"a" * 59 + "\ufffd": "\ufffd"}


def test_the_code_of_an_error_comes_along(run) -> None:
    assert run("throw Object.assign(new Error('q'), { code: 'E1' })").error["code"] == "E1"


@pytest.mark.parametrize(
    ("source", "words"), [(b"\xff\xfe", "not UTF-8"), (b"return 1\0", "NUL"), (b"\x7fELF\x02\x01\x00", "NUL")]
)
def test_no_text(run, source: bytes, words: str) -> None:
    reported = run(source)
    assert reported.outcome == "compile_error"
    assert words in reported.error["message"]
