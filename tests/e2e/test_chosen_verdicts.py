"""A script cannot choose its verdict: what it throws is its own error, and the places in it are its own modules'."""

from collections.abc import Callable, Iterator

import pytest

from lodger.sandbox.job import Bundle, Job, Report
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool
from lodger.sandbox.syntax_check import SyntaxChecker

RUNTIMES = ("quickjs", "quickjs-native")
TOO_DEEP = "Maximum call stack size exceeded"


@pytest.fixture(params=RUNTIMES)
def js(request: pytest.FixtureRequest) -> Iterator[Callable[..., Report]]:
    reader = SyntaxChecker(lambda: Pool(runtime=request.param, size=1, cores=1, profile="trusted"))

    def run(source: str, **limits: int) -> Report:
        return reader.read(Job(Bundle({"main.js": source}), limits=Limits(**limits), tenant="acme"))

    yield run
    reader.close()


LOOK_ALIKES = [
    "Object.assign(new Error('out of memory'), { name: 'InternalError' })",
    "new (class InternalError extends Error {})('out of memory')",
    "Object.create(null, { name: { value: 'InternalError' }, message: { value: 'out of memory' } })",
    "globalThis.InternalError ? new InternalError('out of memory') : new Error('out of memory')",
    f"new RangeError('{TOO_DEEP}')",
    f"Object.assign(new Error('{TOO_DEEP}'), {{ name: 'RangeError' }})",
    "Object.assign(new Error('x'), { name: 'LimitExceeded', code: 'call_limit' })",
    "null",
]


def test_a_look_alike_is_a_script_error(js: Callable[..., Report]) -> None:
    for thrown in LOOK_ALIKES:
        assert js(f"throw {thrown}").outcome is Outcome.SCRIPT_ERROR, thrown


def test_the_real_ones_are_still_limits(js: Callable[..., Report]) -> None:
    assert js("const f = () => f() + 1; return f()").outcome is Outcome.STACK_LIMIT
    memory = js("const a = []; for (;;) a.push(new Uint8Array(1e6))", memory_bytes=32 << 20, cpu_ms=20_000)
    assert memory.outcome is Outcome.MEMORY_LIMIT
    assert js("return new Array(1e9).fill(0).length", memory_bytes=32 << 20).outcome is Outcome.MEMORY_LIMIT


def test_a_forged_stack_names_no_place_outside_the_script(js: Callable[..., Report]) -> None:
    forged = "    at read (/etc/passwd:1:2)\\n    at x (other.js:9:9)\\n    at y (main.js:9000:1)\\nroot:x:0:0\\n    at f (main.js:2:3)"
    found = js(f'const e = new Error("mine");\ne.stack = "{forged}";\nthrow e').error
    assert found is not None
    assert (found.file, found.line, found.stack) == ("main.js", 2, "    at f (main.js:2:3)")
    alone = js('throw Object.assign(new Error("mine"), { stack: "    at read (/etc/passwd:1:2)" })').error
    assert alone is not None
    assert (alone.file, alone.line, alone.column, alone.stack) == (None, None, None, "")


def test_true_frames_stay(js: Callable[..., Report]) -> None:
    found = js("const f = () => {\n  [1].map(() => { throw new Error('deep') });\n};\nf()").error
    assert found is not None
    assert (found.file, found.line) == ("main.js", 2)
    assert "at map (native)" in found.stack
    assert found.stack.count("main.js:") == 3
