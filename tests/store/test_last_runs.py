"""When a schedule last ran, and where: for programs that ask and for the script itself."""

import json

from tests.store.bench import THROWN, Bench

from lodger.engine.core import strict_json
from lodger.engine.core.clock import from_us
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.node.executors.script_context import context_json
from lodger.sandbox.outcome import Outcome


def test_the_last_run_whatever_became_of_it(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    verbs = bench.engine.schedules
    assert verbs.last_run("acme", "s") is None
    bench.clock.advance(60)
    bench.tick()
    assert verbs.last_run("acme", "s") is None
    bench.clock.advance(5)
    (claim,) = bench.claim()
    running = verbs.last_run("acme", "s")
    assert running is not None
    assert (running.state, running.node, running.finished_at) == ("running", "n1", None)
    bench.clock.advance(2)
    bench.commit(claim, finished=THROWN)
    last = verbs.last_run("acme", "s")
    assert last is not None
    now = bench.clock.us
    assert (last.slot, last.started_at, last.finished_at) == (
        from_us(now - 7_000_000),
        from_us(now - 2_000_000),
        from_us(now),
    )
    assert (last.state, last.outcome, last.node) == ("failed", Outcome.SCRIPT_ERROR, "n1")


def test_of_two_runs_it_is_the_one_that_started_last(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    bench.schedule(name="t")
    for _ in range(2):
        bench.clock.advance(60)
        bench.tick()
        claims = bench.run()
    last = bench.engine.schedules.last_run("acme", "s")
    assert last is not None
    assert last.slot == from_us(bench.clock.us)
    assert last.action_id in {claim.action_id for claim in claims}


def test_a_script_is_told_about_the_last_run_that_succeeded(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    reported = []
    for node in ("n1", "n2", "n1"):
        bench.clock.advance(60)
        bench.tick()
        bench.clock.advance(1)
        (claim,) = bench.claim(node=node)
        reported.append(json.loads(context_json(claim, Datasets(), bench.clock.us))["action"]["lastRun"])
        bench.commit(claim, node=node)
        bench.clock.advance(-1)
    assert [each and each["node"] for each in reported] == [None, "n1", "n2"]
    started = strict_json.tag_instant(from_us(bench.clock.us - 60_000_000 + 1_000_000))
    assert reported[2]["startedAt"] == started
