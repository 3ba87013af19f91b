"""Both engines of JavaScript give the same answers, but for the differences that docs/reference/javascript.md lists, and no others."""

import json
import re
from pathlib import Path

import pytest
from tests.unit.runtime import harness

from lodger.sandbox.runtimes.quickjs import Runtime
from lodger.sandbox.runtimes.quickjs_native import Runtime as NativeRuntime

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "reference" / "javascript.md"
EXPRESSIONS = [line for line in (HERE / "javascript_expressions.txt").read_text().splitlines() if line]
#: Each expression is compiled by itself, so that one that an engine cannot read says so and no more.
PROGRAM = """
const shown = (value) => {
  if (typeof value === "bigint") return value + "n";
  if (Object.is(value, -0)) return "-0";
  if (typeof value === "function") return "a function";
  if (value === undefined || typeof value === "number" || typeof value === "symbol") return String(value);
  return JSON.stringify(value, (_, inner) =>
    typeof inner === "bigint" ? inner + "n" : inner instanceof RegExp ? String(inner) : ArrayBuffer.isView(inner) ? [...inner] : inner);
};
return EXPRESSIONS.map((text) => {
  try {
    return shown(new Function("return (" + text + ")")());
  } catch (error) {
    return error.name;
  }
});
"""
ROW = re.compile(r"^\| `` (.+) `` \| `(.+)` \| `(.+)` \|", re.MULTILINE)


def answers(runtime: Runtime | NativeRuntime) -> list[str]:
    program = PROGRAM.replace("EXPRESSIONS", json.dumps(EXPRESSIONS))
    found: list[str] = harness.run(runtime, program, cpu_ms=20_000).result
    return found


@pytest.fixture(scope="session")
def engines() -> tuple[Runtime, NativeRuntime]:
    return harness.prepared(), harness.prepared_native()


def test_the_engines_differ_where_the_page_says_so_and_nowhere_else(engines: tuple[Runtime, NativeRuntime]) -> None:
    assert len(set(EXPRESSIONS)) > 450
    pairs = zip(EXPRESSIONS, *map(answers, engines), strict=True)
    found = {text: (guest, native) for text, guest, native in pairs if guest != native}
    written = {text.replace(r"\|", "|"): (guest, native) for text, guest, native in ROW.findall(PAGE.read_text())}
    assert found == written
