"""Invalid bundles: names with a meaning in the wire format or the glue, no entry, too many modules."""

import asyncio

import pytest

from lodger.escape.arena import SuitePool, settings_for
from lodger.escape.runner import started
from lodger.escape.switchboard import Switchboard
from lodger.sandbox import Bundle, Job, Outcome, Report

ACTION = "export default ({ action }) => action.id"
CONTEXT = '{"action":{"id":"real"}}'


def run(bundle: Bundle) -> Report:
    async def go() -> Report:
        async with started(SuitePool("quickjs", settings_for("quickjs"))) as pool:
            job = Job(bundle)
            return await pool.run(job, Switchboard(job.limits))

    return asyncio.run(go())


@pytest.mark.parametrize("name", ["", "a\nb.js", "a\0.js", "n" * 256, "\x1b[2J.js"])
def test_names_that_are_no_names_are_refused(name: str) -> None:
    report = run(Bundle({"main.js": ACTION, name: '{"action":{"id":"forged"}}'}, CONTEXT))
    assert report.outcome is Outcome.BAD_REQUEST
    assert report.error is not None
    assert "printable" in report.error.message


@pytest.mark.parametrize("modules", [{}])
def test_an_entry_that_is_not_there_is_told(modules: dict[str, str]) -> None:
    report = run(Bundle(modules))
    assert report.outcome is Outcome.COMPILE_ERROR
    assert report.error is not None
    assert "main.js" in report.error.message


def test_too_many_modules_are_refused() -> None:
    modules = {"main.js": ACTION, **{f"m{number}.js": "" for number in range(1000)}}
    assert run(Bundle(modules, CONTEXT)).outcome is Outcome.BAD_REQUEST


@pytest.mark.parametrize(
    "name", ["lodger:begin", "lodger:module", "eval_script", "__proto__", "constructor", "main.js/../x.js"]
)
def test_names_of_ours_are_ours(name: str) -> None:
    report = run(Bundle({"main.js": ACTION, name: "throw new Error('evaluated')"}, CONTEXT))
    assert (report.outcome, report.result) == (Outcome.OK, '"real"')
