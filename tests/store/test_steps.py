"""Several scripts in order: each step has its own try, limits and logs; what fails is resumed where it failed."""

import json
from collections.abc import Callable

import pytest
from tests.store.bench import THROWN, Bench
from tests.traces import TABLE, Traces, seen

from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.store.records import Schedule
from lodger.sandbox.job import LogLine
from lodger.sandbox.outcome import Outcome


def ended_with(result: object) -> Finished:
    return Finished(Outcome.OK, result=json.dumps(result), logs=(LogLine("info", f"says {result}", 1),))


def steps(bench: Bench, **terms: object) -> Schedule:
    bench.tenant()
    for name in ("fetch", "shape", "send"):
        bench.engine.scripts.put("acme", name, f"export default () => '{name}'")
    given = ["fetch", {"script": "shape", "limits": {"cpu_ms": 50}}, "send"]
    made = bench.engine.schedules.create(
        "acme",
        "s",
        script=given,
        rules="every 3600s",
        params={"first": 1},
        **terms,  # type: ignore[arg-type]  # forwarded
    )
    bench.clock.advance(3600)
    bench.tick()
    return made


def test_each_step_has_its_script_input_limits_row_and_logs(bench: Bench) -> None:
    schedule = steps(bench)
    seen = []
    for result in ([1], {"two": 2}, "three"):
        (claim,) = bench.claim()
        seen.append((claim.step, claim.script_name, claim.params, claim.limits.cpu_ms, claim.tries))
        bench.commit(claim, finished=ended_with(result))
    assert seen == [
        (0, "fetch", {"first": 1}, 1000, 1),
        (1, "shape", [1], 50, 1),
        (2, "send", {"two": 2}, 1000, 1),
    ]
    (action,) = bench.actions(schedule)
    assert (action.state, action.result, action.step, action.script) == ("done", "three", 2, "send")
    tries = bench.engine.actions.attempts(None, action.id)
    assert [(each.step, each.outcome, each.logs[0].text) for each in tries] == [
        (0, Outcome.OK, "says [1]"),
        (1, Outcome.OK, "says {'two': 2}"),
        (2, Outcome.OK, "says three"),
    ]


def test_a_retry_resumes_at_the_failed_step_with_its_input_and_its_own_tries(bench: Bench) -> None:
    schedule = steps(bench, retry={"attempts": 2, "backoff_s": 1})
    with bench.engine.context.database.write() as connection:
        TABLE.create(connection)
    traces = Traces(bench.engine.datasets)

    def good(claim: Claim) -> Finished:
        return Finished(Outcome.OK, result="[7]", journal=traces.journal(claim))

    def end(finished: Finished | Callable[[Claim], Finished]) -> None:
        bench.commit(*bench.claim(), finished=finished)
        bench.clock.advance(5)

    for finished in (THROWN, good, THROWN):
        end(finished)
    (claim,) = bench.claim()
    assert (claim.step, claim.tries, claim.params, claim.attempt) == (1, 2, [7], 4)
    bench.commit(claim, finished=good)
    end(THROWN)
    end(good)
    assert bench.states(schedule) == ["done"]
    with bench.engine.context.database.read() as connection:
        applied = [(step, tries) for _id, step, tries in seen(connection)]
    assert applied == [(0, 2), (1, 2), (2, 2)], "the effects of each step exactly once"


def test_what_is_no_step_is_refused(bench: Bench) -> None:
    bench.tenant()
    for wish in ([], ["job"] * 21, [{"limits": {}}], [{"script": "job", "colour": 1}], [7]):
        with pytest.raises(InputError, match="step"):
            bench.engine.schedules.create("acme", "s", script=wish, rules="every 60s")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(NotFound):
        bench.engine.schedules.create("acme", "s", script=["job", "absent"], rules="every 60s")
