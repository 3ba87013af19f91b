"""Formatting of values in log lines."""

import re
from pathlib import Path

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)


def test_lines(run) -> None:
    text = (Path(__file__).parent / "console_lines.js").read_text()
    wanted = re.findall(r"; //(\w+): ?(.*)", text)
    assert len(wanted) > 35
    reported = run(text, log_lines=len(wanted))
    assert reported.logs == [(level, line.replace("⏎", "\n")) for level, line in wanted], reported.text


def test_deep_values_are_cut_off_and_timers_show_their_time(run) -> None:
    deep, timer = run(
        "let a = {}; for (let i = 0; i < 100; i++) a = { a }; console.log(a); console.time(); console.timeEnd()"
    ).lines
    assert "[Object]" in deep
    assert timer.startswith("default: ")
    assert timer.endswith(" ms")


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


def test_trace_has_frames(run) -> None:
    reported = run("function f() { console.trace('here') }\nf()")
    assert reported.logs[0][0] == "debug"
    assert "at f (main.js:1:" in reported.lines[0]
