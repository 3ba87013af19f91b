"""A limit has the same outcome wherever it is exceeded: in a job, a timer, a conversion, or with memory that stays full."""

import pytest
from tests.limits.machine import MIB, Machine

from lodger.sandbox import Outcome

HOG = "const a = []; for (;;) a.push(new Uint8Array(1e5));"
DEEP = "const f = () => f() + 1; f();"
FULL = "try { for (;;) globalThis.l = { l: globalThis.l } } catch {} "
MEMORY, STACK = Outcome.MEMORY_LIMIT, Outcome.STACK_LIMIT
PLACES = [
    (f"setTimeout(() => {{ {HOG} }}, 0); await new Promise(() => {{}})", MEMORY),
    (f"queueMicrotask(() => {{ {HOG} }}); await new Promise((r) => setTimeout(r, 5)); return 1", MEMORY),
    (f"return {{ toJSON() {{ {HOG} }} }}", MEMORY),
    (f"await import({{ toString() {{ {HOG} }} }})", MEMORY),
    (FULL + "return 'x'.repeat(200000)", MEMORY),
    ("let f = () => 0; for (;;) { const g = f; f = () => g; }\nexport default () => 1;", MEMORY),
    (f"{HOG}\nexport default () => 1;", MEMORY),
    ("for (;;) setTimeout(() => {}, 1e6)", MEMORY),
    (f"setTimeout(() => {{ {DEEP} }}, 0); await new Promise(() => {{}})", STACK),
    (f"queueMicrotask(() => {{ {DEEP} }}); await new Promise((r) => setTimeout(r, 5)); return 1", STACK),
    (f"return {{ toJSON() {{ {DEEP} }} }}", STACK),
]


def test_every_place(js: Machine) -> None:
    wrong = {}
    for script, outcome in PLACES:
        report = js(script, memory_bytes=32 * MIB, cpu_ms=2000)
        named = report.error is not None and (outcome is not MEMORY or "32 MiB" in report.error.message)
        if report.outcome is not outcome or not named:
            wrong[script] = report
    assert not wrong


#: Code that runs after memory is exhausted, and its outcome if there was still enough.
STILL = {
    "throw 1": Outcome.SCRIPT_ERROR,
    "throw new Error('after all')": Outcome.SCRIPT_ERROR,
    "null.x": Outcome.SCRIPT_ERROR,
    "console.log('x'); await kv.get('k'); return 1": Outcome.OK,
    "return globalThis.l === null": Outcome.OK,
}


def test_out_of_a_memory_that_is_full_it_is_said_or_what_the_script_says(js: Machine) -> None:
    for then, fits in STILL.items():
        report = js(FULL + then, memory_bytes=32 * MIB, cpu_ms=2000)
        assert report.outcome in (MEMORY, fits), (then, report)
        assert report.error is None or report.error.name != "NeverSettled", then


def test_memory_that_was_enough_is_not_blamed_for_a_promise_that_nothing_settles(js: Machine) -> None:
    report = js("const a = new Uint8Array(8e6); await new Promise(() => {}); return a", memory_bytes=32 * MIB)
    assert report.outcome is Outcome.SCRIPT_ERROR
    assert report.error is not None
    assert report.error.name == "NeverSettled"


@pytest.mark.parametrize("then", ["return 1", "await new Promise((r) => setTimeout(r, 5)); return 1"])
def test_what_a_queued_job_throws_ends_the_run_as_its_own_error(js: Machine, then: str) -> None:
    report = js(f"\nqueueMicrotask(() => {{ throw new TypeError('mine'); }}); {then}")
    assert report.outcome is Outcome.SCRIPT_ERROR
    assert report.error is not None
    assert (report.error.name, report.error.message, report.error.line) == ("TypeError", "mine", 2)


def test_queued_jobs_keep_their_order_and_need_a_function(js: Machine) -> None:
    order = "const o = []; queueMicrotask(() => o.push(1)); Promise.resolve().then(() => o.push(2)); queueMicrotask(() => o.push(3));"
    assert js(order + " await null; await null; await null; return o").result == "[1,2,3]"
    assert (
        js("try { queueMicrotask({}) } catch (e) { return e.message }").result
        == '"queueMicrotask needs a function, not object"'
    )
