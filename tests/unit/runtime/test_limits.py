"""What a script notices of its limits, beside their outcomes on every runtime (:mod:`tests.limits`)."""

import pytest


def test_cpu_says_where_and_what_came_last(run) -> None:
    reported = run(
        "async function spin(echo) {\n  await echo.ask(1)\n  for (;;) Math.abs(1)\n}\nexport default ({ echo }) => spin(echo)",
        cpu_ms=50,
    )
    assert "spin" in reported.error["stack"]
    assert "echo.ask" in reported.error["message"]
    assert reported.error["line"] == 3


def test_memory_can_be_caught_and_the_run_goes_on(run) -> None:
    reported = run("try { new ArrayBuffer(1e9) } catch (e) { return e.message }")
    assert reported.result == "out of memory"


def test_memory_given_back_is_room_to_go_on(run) -> None:
    reported = run(
        "let all = []; try { for (;;) all.push({}) } catch {} all = null;"
        "await new Promise((wake) => setTimeout(wake, 1)); return 1",
        memory_bytes=16 << 20,
        cpu_ms=20_000,
    )
    assert reported.result == 1


DEEP = """
let depth = 0;
const cases = {
  calls: () => { const f = () => { depth++; f() }; f() },
  constructors: () => { class A { constructor() { depth++; new A() } } new A() },
  getters: () => { const o = { get x() { depth++; return this.x } }; o.x },
  callbacks: () => { const f = () => { depth++; [1].map(f) }; f() },
  conversions: () => { const o = { toString() { depth++; return "" + o } }; "" + o },
  proxies: () => { let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x },
  sources: () => new Function("{".repeat(1e5)),
  lists: () => { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; String(a) },
};
const seen = {};
for (const [name, run] of Object.entries(cases)) {
  depth = 0;
  try { run() } catch (error) { seen[name] = [error instanceof RangeError, error.message, depth] }
}
const sum = (n) => (n === 0 ? 0 : 1 + sum(n - 1));
seen.after = sum(8000);
return seen
"""


def test_deep_recursion_is_caught_as_a_range_error_and_the_run_goes_on(run) -> None:
    seen = run(DEEP, cpu_ms=20_000).result
    assert seen.pop("after") == 8000
    assert len(seen) == 8
    assert all(found[:2] == [True, "Maximum call stack size exceeded"] for found in seen.values())
    assert seen["calls"][2] > 9000
    assert seen["callbacks"][2] > 3000


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("\nconst f = () => f() + 1; f()", 2),
        ("const f = async () => {\nawait f() }; await f()", 2),
        (
            "JSON.parse('['.repeat(1e6))",
            None,
        ),  # the engine's own functions fill the native stack first, which is a trap
        ("new Function('return ' + '('.repeat(1e5))", None),
        ("if (0) {} else " * 16_000 + "{} return 1", None),
    ],
)
def test_stack(run, source: str, line: int | None) -> None:
    reported = run(source, cpu_ms=20_000)
    assert reported.outcome == "stack_limit"
    assert "nested" in reported.error["message"]
    assert reported.error["line"] == line


def test_log_lines_before_an_error_are_counted_too(run) -> None:
    reported = run("for (let i = 0; i < 5; i++) console.log(i); throw new Error('x')", log_lines=2)
    assert (len(reported.logs), reported.dropped) == (2, 3)
    reported = run("for (let i = 0; i < 5; i++) console.log(i); for (;;);", log_lines=2, cpu_ms=50)
    assert (len(reported.logs), reported.dropped) == (2, 3)


def test_the_smallest_limits_still_run_a_trivial_script(run) -> None:
    assert (
        run(
            "console.log({ a: 1 }); return 1", memory_bytes=8 << 20, cpu_ms=10, result_bytes=4, log_line_bytes=16
        ).result
        == 1
    )
