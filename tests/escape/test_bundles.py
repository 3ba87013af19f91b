"""Invalid bundles: names with a meaning in the wire format or the glue, no entry, too many modules."""

import asyncio

from lodger.escape.arena import SuitePool, settings_for
from lodger.escape.runner import started
from lodger.escape.switchboard import Switchboard
from lodger.sandbox import Bundle, Job, Outcome, Report

ACTION = "export default ({ action }) => action.id"
CONTEXT = '{"action":{"id":"real"}}'


REFUSED = ("", "a\nb.js", "a\0.js", "n" * 256, "\x1b[2J.js")
OURS = ("lodger:begin", "lodger:module", "eval_script", "__proto__", "constructor", "main.js/../x.js")


def run(*bundles: Bundle) -> list[Report]:
    """Return the report of each bundle."""

    async def go() -> list[Report]:
        async with started(SuitePool("quickjs", settings_for("quickjs"))) as pool:
            return [await pool.run(Job(each), Switchboard(Job(each).limits)) for each in bundles]

    return asyncio.run(go())


def test_names_that_are_no_names_are_refused() -> None:
    forged = (Bundle({"main.js": ACTION, name: '{"action":{"id":"forged"}}'}, CONTEXT) for name in REFUSED)
    for report in run(*forged):
        assert report.outcome is Outcome.BAD_REQUEST
        assert report.error is not None
        assert "printable" in report.error.message


def test_no_entry_and_too_many_modules_are_told() -> None:
    many = {"main.js": ACTION, **{f"m{number}.js": "" for number in range(1000)}}
    nothing, refused = run(Bundle({}), Bundle(many, CONTEXT))
    assert nothing.outcome is Outcome.COMPILE_ERROR
    assert nothing.error is not None
    assert "main.js" in nothing.error.message
    assert refused.outcome is Outcome.BAD_REQUEST


def test_names_of_ours_are_ours() -> None:
    for report in run(*(Bundle({"main.js": ACTION, name: "throw new Error('evaluated')"}, CONTEXT) for name in OURS)):
        assert (report.outcome, report.result) == (Outcome.OK, '"real"')
