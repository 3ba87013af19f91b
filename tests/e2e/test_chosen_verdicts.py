"""A script cannot choose its verdict: what it throws is its own error, and the places in it are its own modules'."""

from collections.abc import Callable, Iterator

import pytest

from lodger.sandbox.job import Bundle, Job, Report
from lodger.sandbox.limits import Limits
from lodger.sandbox.pool import Pool
from lodger.sandbox.syntax_check import SyntaxChecker

RUNTIMES = ("quickjs", "quickjs-native")


@pytest.fixture(params=RUNTIMES)
def js(request: pytest.FixtureRequest) -> Iterator[Callable[..., Report]]:
    reader = SyntaxChecker(lambda: Pool(runtime=request.param, size=1, cores=1, profile="trusted"))

    def run(source: str, **limits: int) -> Report:
        return reader.read(Job(Bundle({"main.js": source}), limits=Limits(**limits), tenant="acme"))

    yield run
    reader.close()


def test_a_forged_stack_names_no_place_outside_the_script(js: Callable[..., Report]) -> None:
    forged = "    at read (/etc/passwd:1:2)\\n    at x (other.js:9:9)\\n    at y (main.js:9000:1)\\nroot:x:0:0\\n    at f (main.js:2:3)"
    found = js(f'const e = new Error("mine");\ne.stack = "{forged}";\nthrow e').error
    assert found is not None
    assert (found.file, found.line, found.stack) == ("main.js", 2, "    at f (main.js:2:3)")
    alone = js('throw Object.assign(new Error("mine"), { stack: "    at read (/etc/passwd:1:2)" })').error
    assert alone is not None
    assert (alone.file, alone.line, alone.column, alone.stack) == (None, None, None, "")
