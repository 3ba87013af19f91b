"""Exact results of scripts."""

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("export default () => 1 + 1", 2),
        ("export default function () { return 'x' }", "x"),
        ("export default async function named() { return [1] }", [1]),
        ("async function f() { return { a: 1 } }\nexport { f as default }", {"a": 1}),
        ("const f = () => null;\nexport default f", None),
        ("export default async () => {}", None),
        ("const v = await Promise.resolve(4);\nexport default () => v", 4),
        ("return 5", 5),
        ("const x = await Promise.resolve(6)\nreturn x", 6),
        ("const unused = 1", None),
        ("", None),
        ("// only a comment", None),
        ("#!/usr/bin/env lodger\nreturn 7", 7),
        ("\ufeffreturn 8", 8),
        ("const exported = 'the word export in a snippet'; return exported.length", 28),
        ("'use strict'; if (1) return 9", 9),
        ("return { toJSON() { return 'own' } }", "own"),
        ("return { toJSON() {} }", None),
        ("return new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("return [undefined, -0, { a: undefined }]", [None, 0, {}]),
        ("return 9007199254740993", 9007199254740992),
        ("return 'a\\0b'", "a\0b"),
        ("return { then(resolve) { resolve('thenable') } }", "thenable"),
    ],
)
def test_value(run, source: str, expected: object) -> None:
    assert run(source).result == expected


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("return 10n", "not JSON: a BigInt cannot"),
        (
            "return { rows: [1, { total: 5n }] }",
            "JSON: rows[1].total: a BigInt cannot be stored; hand over Number(value) or String(value)",
        ),
        ("return [[1, NaN]]", "JSON: [0][1]: NaN cannot"),
        ("return { a: { b: 1, 'c-d': -Infinity } }", 'JSON: a["c-d"]: -Infinity cannot'),
        ("return { bytes: new Uint8Array([1]) }", "JSON: bytes: a Uint8Array cannot be stored; hand over [...bytes]"),
        ("return new Float64Array(0)", "a Float64Array cannot"),
        ("return () => 1", "JSON: a function cannot"),
        ("return { a: [() => 1] }", "a[0]: a function cannot"),
        ("return { a: Symbol('s') }", "a: a symbol cannot"),
        ("return { a: new Date(NaN) }", "a: an Invalid Date cannot"),
        (
            "return [Object.assign(new Error('e'), { code: 1 })]",
            "[0]: an Error cannot be stored; hand over its message",
        ),
        ("return { a: { b: new Map([[1, 2]]) }, c: 1 }", "a.b: a Map cannot be stored; hand over Object.fromEntries"),
        ("return { a: { b: {} }, c: new Set() }", "JSON: c: a Set cannot be stored; hand over [...set]"),
        ("return [Promise.resolve(1)]", "await it"),
        ("return new URLSearchParams('a=b')", "plain data"),
        ("return /x/", "its source"),
        ("return { toJSON() { return { x: 1 / 0 } } }", "JSON: x: Infinity cannot"),
        ("const a = {}; a.a = a; return a", "circular"),
        ("let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a", "nested more than 100 levels deep"),
        ("export default 5", "is number"),
        ("export default null", "is null"),
        ("export default class {}", "is a class"),
        ("await new Promise(() => {})", "cannot settle"),
    ],
)
def test_no_value(run, source: str, words: str) -> None:
    reported = run(source)
    assert reported.outcome == "script_error"
    assert words in reported.error["message"]


def test_a_large_result_is_refused_before_it_is_copied(run) -> None:
    reported = run("return 'x'.repeat(2000)", result_bytes=1000)
    assert reported.outcome == "output_limit"
    assert "2002" in reported.error["message"]
    assert run("return 'x'.repeat(998)", result_bytes=1000).result == "x" * 998


def test_one_run_one_answer(run) -> None:
    reported = run("let n = 0; const f = () => { if (n++ < 50) queueMicrotask(f) }; f(); return n")
    assert reported.status == 0
    assert reported.outcome == "ok"
