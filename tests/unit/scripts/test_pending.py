"""Incomplete runs fail: unhandled rejections, and work that is still pending at the return."""

from typing import Any

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)


def failing(name: str, arguments: Any) -> tuple[bool, Any]:
    return False, {"name": "CallError", "code": "denied", "message": f"no {name}"}


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        ("Promise.reject(new Error('lost'))", "lost", 3),
        ("[1].forEach(async () => {\n await null; await null; await null; throw new Error('late') })", "late", 4),
        ("(async () => { null.x })()", "cannot read property 'x' of null", 3),
        ("new Promise(() => { throw new TypeError('inside') })", "inside", 3),
        ("Promise.resolve(1).then(() => { throw new Error('then') })", "then", 3),
        ("Promise.reject(new Error('finally')).finally(() => 1)", "finally", 3),
        ("echo.ask(1)", "no echo.ask", 3),
        ("[1].forEach(async () => { await echo.ask(1) })", "no echo.ask", 3),
        ("Promise.all([echo.ask(1)])", "no echo.ask", 3),
        ("Promise.reject('only text')", "threw 'only text'", None),
    ],
)
def test_a_rejection_that_nothing_handles_fails_the_run(run, body: str, message: str, line: int | None) -> None:
    reported = run(
        f"export default async ({{ echo }}) => {{\n  // the third line\n  {body};\n  return 'green';\n}}",
        answer=failing,
    )
    assert reported.outcome == "script_error"
    assert (reported.error["message"], reported.error["line"]) == (message, line)
    assert any("nothing handled it" in text for level, text in reported.logs if level == "error")


@pytest.mark.parametrize(
    "body",
    [
        "const p = Promise.reject(new Error('x')); await null; await p.catch(() => 0)",
        "const p = (async () => { throw 1 })(); await new Promise((wake) => setTimeout(wake, 5)); try { await p } catch {}",
        "await Promise.allSettled(Array.from({ length: 3000 }, async (_, n) => { throw n }))",
        "await Promise.race([1, Promise.reject(new Error('slower'))])",
        "await Promise.any([Promise.reject(1), 2])",
        "await Promise.all([echo.ask(1), echo.ask(2)]).catch(() => 0)",
        "try { await import('./nowhere.js') } catch {}",
        "let no; const p = new Promise((_, reject) => (no = reject)); no(1); p.catch(() => 0)",
        "await { then(_, no) { no(1) } }.then(null, () => 0)",
        "for (let i = 0; i < 300; i++) { const p = Promise.reject(i); p.catch(() => 0) }",
    ],
)
def test_a_rejection_that_is_handled_in_time_does_not(run, body: str) -> None:
    reported = run(f"export default async ({{ echo }}) => {{ {body}; return 1 }}", answer=failing)
    assert reported.result == 1
    assert not [text for level, text in reported.logs if level == "error"]


def test_more_than_are_kept_still_fail_the_run(run) -> None:
    reported = run("for (let i = 0; i < 1000; i++) Promise.reject(new Error(`n${i}`)); return 1")
    assert reported.error["message"] == "n0"


def test_what_is_pending_at_the_return_is_told(run) -> None:
    timer = run("setTimeout(() => console.log('never'), 60_000); return 1")
    assert timer.result == 1
    assert [level for level, _ in timer.logs] == ["warn"]
    assert "1 timer was" in timer.lines[0]
    two = run(
        "setInterval(() => {}, 1000); (async () => { await new Promise((wake) => setTimeout(wake, 9999)) })(); return 1"
    )
    assert "2 timers were" in two.lines[0]
    call = run("export default ({ echo }) => { echo.ask(1); echo.ask(2); return 1 }")
    assert (call.result, len(call.calls)) == (1, 2)
    assert "2 calls were unanswered" in call.lines[0]
    assert run("const id = setTimeout(() => {}, 9999); clearTimeout(id); return 1").logs == []


def test_what_was_begun_before_the_return_runs_before_the_answer(run) -> None:
    reported = run("(async () => { await null; await null; console.log('done') })(); return 1")
    assert (reported.result, reported.lines) == (1, ["done"])


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("export const run = () => 1", 1),
        ("\nconst run = () => 1;\nexport { run }", 3),
        ("// nothing by default\nexport function main() {}", 2),
        ("console.log('x'); export async function main() {}", 1),
    ],
)
def test_a_module_that_exports_nothing_to_call_does_not_run(run, source: str, line: int) -> None:
    reported = run(source)
    assert (reported.outcome, reported.error["line"], reported.lines) == ("compile_error", line, [])
    assert "export default" in reported.error["message"]


@pytest.mark.parametrize(
    "source",
    [
        "// export const a = 1\nconsole.log('x')",
        "const t = `\nexport const a = 1\n`; console.log('x')",
        "export { f as default }; function f() { console.log('x') }",
    ],
)  # fmt: skip
def test_a_snippet_that_only_speaks_of_exports_runs(run, source: str) -> None:
    assert run(source).lines == ["x"]


def test_an_error_in_a_timer_ends_the_run(run) -> None:
    reported = run("setTimeout(() => {\n  throw new Error('late')\n}, 1)\nawait new Promise(() => {})")
    assert (reported.outcome, reported.error["message"], reported.error["line"]) == ("script_error", "late", 2)


def test_a_cleared_timer_does_not_wake(run) -> None:
    source = "const t = setTimeout(() => {}, 50_000); setTimeout(() => clearTimeout(t), 1); await new Promise(() => {})"
    assert run(source).error["name"] == "NeverSettled"
