"""Errors have the author's file, line and column, and no frames of the library."""

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


def test_the_code_of_an_error_comes_along(run) -> None:
    assert run("throw Object.assign(new Error('q'), { code: 'E1' })").error["code"] == "E1"


@pytest.mark.parametrize(
    ("source", "words"), [(b"\xff\xfe", "not UTF-8"), (b"return 1\0", "NUL"), (b"\x7fELF\x02\x01\x00", "NUL")]
)
def test_no_text(run, source: bytes, words: str) -> None:
    reported = run(source)
    assert reported.outcome == "compile_error"
    assert words in reported.error["message"]
