"""Formatting of values in log lines."""

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)


@pytest.mark.parametrize(
    ("call", "level", "text"),
    [
        ("log('a', 1, true, null, undefined)", "info", "a 1 true null undefined"),
        ("info('i')", "info", "i"),
        ("debug('d')", "debug", "d"),
        ("warn('w')", "warn", "w"),
        ("error('e')", "error", "e"),
        ("log()", "info", ""),
        ("log('%s is %d or %i', 'x', '4.5', 4.5, 'more')", "info", "x is 4.5 or 4 more"),
        ("log('100% sure', 1)", "info", "100% sure 1"),
        ("log('%j %o %%', { a: 1 }, [1])", "info", '{"a":1} [ 1 ] %'),
        ("const o = { n: 1n }; console.log('%j %j', o, undefined)", "info", "{ n: 1n } undefined"),
        ("log({ b: 2, [Symbol('a')]: 1 })", "info", "{ b: 2, [Symbol(a)]: 1 }"),
        ("log({ a: 1, b: 'x', c: [1, 'y'], 'd-e': null })", "info", "{ a: 1, b: 'x', c: [ 1, 'y' ], 'd-e': null }"),
        ("log([], {}, [[]], [,1])", "info", "[] {} [ [] ] [ <empty>, 1 ]"),
        ("log(-0, NaN, 10n, Symbol('s'))", "info", "-0 NaN 10n Symbol(s)"),
        ("log(['-0', -0, \"it's\"])", "info", "[ '-0', -0, \"it's\" ]"),
        (
            "log(() => 1, function f() {}, class A {}, class {})",
            "info",
            "[Function (anonymous)] [Function: f] [class A] [class (anonymous)]",
        ),
        ("log(new Map([[1, { a: 2 }]]), new Set(['x']))", "info", "Map(1) { 1 => { a: 2 } } Set(1) { 'x' }"),
        ("log(new Date(0), new Date(NaN), /x/gi)", "info", "1970-01-01T00:00:00.000Z Invalid Date /x/gi"),
        (
            "log(new Uint8Array([1, 2]), new ArrayBuffer(3))",
            "info",
            "Uint8Array(2) [ 1, 2 ] ArrayBuffer { byteLength: 3 }",
        ),
        ("log(Object.create(null), new (class Foo { x = 1 })())", "info", "[Object: null prototype] {} Foo { x: 1 }"),
        ("log({ get a() { throw 1 }, set b(v) {} })", "info", "{ a: [Getter], b: [Setter] }"),
        ("log(new Proxy({}, { ownKeys() { throw 1 } }))", "info", "[unreadable]"),
        ("log(Object(1), Object('s'), Object(5n))", "info", "[Number: 1] [String: 's'] [BigInt: 5n]"),
        ("log(new DOMException('gone', 'AbortError'))", "info", "DOMException [AbortError]: gone"),
        (
            "log([new DOMException('gone')], Promise.resolve(1))",
            "info",
            "[ DOMException [Error]: gone ] Promise { await it to see its value }",
        ),
        ("log(new Blob(['abc'], { type: 'text/css' }))", "info", "Blob { size: 3, type: 'text/css' }"),
        (
            "log(new AbortController())",
            "info",
            "AbortController {\n  signal: AbortSignal { aborted: false, reason: undefined }\n}",
        ),
        ("const f = new FormData(); f.append('a', 'b'); console.log(f)", "info", "FormData [ [ 'a', 'b' ] ]"),
        (
            "log({ [Symbol.toStringTag]: 'Promise' }, { [Symbol.toStringTag]: 'DOMException', a: 1 })",
            "info",
            "{ [Symbol(Symbol.toStringTag)]: 'Promise' } { a: 1, [Symbol(Symbol.toStringTag)]: 'DOMException' }",
        ),
        (
            "log(new URL('https://a.example/b?c=1'), new URLSearchParams('a=1&b= '))",
            "info",
            "https://a.example/b?c=1 URLSearchParams a=1&b=+",
        ),
        (
            "log({ [Symbol.toStringTag]: 'Instant' }, { [Symbol.toStringTag]: 'Headers', a: 1 })",
            "info",
            "{ [Symbol(Symbol.toStringTag)]: 'Instant' } { a: 1, [Symbol(Symbol.toStringTag)]: 'Headers' }",
        ),
        (
            "log(new DataView(new ArrayBuffer(4), 1))",
            "info",
            "DataView {\n  byteLength: 3,\n  byteOffset: 1,\n  buffer: ArrayBuffer { byteLength: 4 }\n}",
        ),
        ("assert(1 === 2, 'sums', 3)", "error", "Assertion failed: sums 3"),
        ("count(); console.countReset()", "info", "default: 1"),
        ("dir([1])", "info", "[ 1 ]"),
        ("timeEnd('t')", "warn", "Timer 't' does not exist"),
    ],
)
def test_line(run, call: str, level: str, text: str) -> None:
    reported = run(call if call.startswith("const ") else f"console.{call}")
    assert reported.logs == [(level, text)], reported.text


def test_cycles_and_depth(run) -> None:
    (cycle,) = run("const a = { n: 1 }; a.self = a; console.log(a)").lines
    assert cycle == "{ n: 1, self: [Circular] }"
    (deep,) = run("let a = {}; for (let i = 0; i < 100; i++) a = { a }; console.log(a)").lines
    assert "[Object]" in deep
    (twice,) = run("const x = {}; console.log([x, x])").lines
    assert twice == "[ {}, {} ]"


def test_long_values_take_lines(run) -> None:
    (text,) = run("console.log({ first: 'x'.repeat(50), second: 'y'.repeat(50) })").lines
    assert text == "{\n  first: '" + "x" * 50 + "',\n  second: '" + "y" * 50 + "'\n}"


def test_many_entries_are_counted(run) -> None:
    (text,) = run("console.log(Array.from({ length: 1000 }, (_, i) => i))").lines
    assert "… 900 more" in text
    (text,) = run("console.log(new Set(Array.from({ length: 1000 }, (_, i) => i)))").lines
    assert text.startswith("Set(1000)")
    assert "… 900 more" in text


def test_a_wide_object_is_bounded(run) -> None:
    reported = run(
        "const o = {}; for (let i = 0; i < 5000; i++) o['k' + i] = 'v'.repeat(100); console.log(o)",
        log_line_bytes=65536,
    )
    assert len(reported.lines[0]) < 30_000


def test_errors_show_the_authors_stack(run) -> None:
    (text,) = run("\nconsole.log(new TypeError('no'))").lines
    assert text.startswith("TypeError: no\n    at ")
    assert "main.js:2:" in text
    assert "eval_script" not in text


def test_errors_show_their_cause_and_their_own_fields(run) -> None:
    script = """
    class HttpError extends Error { name = "HttpError"; status = 500; }
    const error = new HttpError("outer", { cause: Object.assign(new TypeError("inner"), { code: "E_IN" }) });
    console.log(error);
    console.log(new AggregateError([new Error("a"), 7], "many"));
    error.cause = error;
    console.log(error);
    """
    caused, several, circular = run(script).lines
    assert "HttpError: outer\n    at " in caused
    assert "  status: 500," in caused
    assert "  [cause]: TypeError: inner\n" in caused
    assert "{ code: 'E_IN' }" in caused
    assert "[errors]: [" in several
    assert "Error: a" in several
    assert "7" in several
    assert "[cause]: HttpError: outer" in circular


def test_groups_indent(run) -> None:
    assert run("console.group('g'); console.log('a\\nb'); console.groupEnd(); console.log('c')").lines == [
        "g",
        "  a\n  b",
        "c",
    ]


def test_table(run) -> None:
    (text,) = run("console.table([{ id: 1, name: 'Ann' }, { id: 22, town: 'Rome' }])").lines
    assert text == "#  id  name  town\n0  1   Ann   \n1  22        Rome"


def test_counts_and_timers(run) -> None:
    assert run("console.count('a'); console.count('a')").lines == ["a: 1", "a: 2"]
    (text,) = run("console.time(); console.timeEnd()").lines
    assert text.startswith("default: ")
    assert text.endswith(" ms")


def test_trace_has_frames(run) -> None:
    reported = run("function f() { console.trace('here') }\nf()")
    assert reported.logs[0][0] == "debug"
    assert "at f (main.js:1:" in reported.lines[0]
