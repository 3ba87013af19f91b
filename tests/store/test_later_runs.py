"""Later runs that scripts request: committed with the run or not at all, one a key, bounded in number, distance and size."""

from typing import Any

import pytest
from tests.store.bench import Bench
from tests.store.spending import Spender, try_call

from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.output import views
from lodger.engine.store.actions import later_runs
from lodger.engine.store.records import Action
from lodger.sandbox.outcome import Outcome

DAY_MS = 86_400_000


@pytest.fixture
def spender(bench: Bench) -> Spender:
    made = Spender(bench)
    bench.engine.tenants.create("acme", grants=["run", "run:other", "kv"], limits={"later_runs": 30})
    for name in ("job", "other", "third"):
        bench.engine.scripts.put("acme", name, "export default () => 1")
    return made


def requested(spender: Spender) -> dict[str, Action]:
    found = spender.bench.engine.actions.list("acme", limit=1000)
    return {each.id: each for each in found if each.requested_by is not None}


def waiting(spender: Spender) -> list[Action]:
    return sorted((each for each in requested(spender).values() if each.state == "ready"), key=lambda each: each.due_at)


def test_a_run_is_requested_with_the_outcome_or_not_at_all(spender: Spender) -> None:
    ids: list[Any] = []

    async def play(attempt: Attempt) -> None:
        ids.append(await try_call(attempt, "schedule.runAt", delay="PT5M", input={"$object": {"$a": 1}}, key="k"))
        ids.append(await try_call(attempt, "schedule.runAt", script="other", at="2027-01-01T00:00:00Z"))

    (claim,) = spender.asked()
    spender.through(claim, play, Outcome.SCRIPT_ERROR)
    assert requested(spender) == {}
    assert "later_runs" not in spender.used()

    (claim,) = spender.asked()
    spender.through(claim, play)
    own, other = waiting(spender)
    assert [own.id, other.id] == ids[2:]
    assert (own.script, own.params, own.requested_by) == ("job", {"$a": 1}, f"action {claim.action_id}")
    assert (own.due_at.timestamp() * 1e6 - claim.started_us, other.script) == (300e6, "other")
    assert spender.used()["later_runs"] == 2
    (attempt,) = spender.bench.engine.actions.attempts("acme", claim.action_id)
    assert [(each["effect"], each["id"], each["script"]) for each in attempt.effects] == [
        ("run", own.id, "job"), ("run", other.id, "other"),
    ]  # fmt: skip

    # A commit under a lost lease, and a dry run, request nothing.
    spender.end((claim, spender.run(claim, play)))
    assert len(requested(spender)) == 2
    spender.bench.clock.us += 300_000_000
    (claim,) = spender.bench.claim()
    assert (claim.action_id, claim.params, claim.origin) == (own.id, {"$a": 1}, "once")


def test_a_key_names_the_newest_run_and_cancels_by_it(spender: Spender) -> None:
    async def play(attempt: Attempt) -> None:
        for delay in (5000, 10**6, 10**7):
            await try_call(attempt, "schedule.runAt", delay=delay, key="k")
        await try_call(attempt, "schedule.runAt", delay=5000, key="k", script="other")
        unkeyed = await try_call(attempt, "schedule.runAt", delay=5000)
        await try_call(attempt, "schedule.cancel", run=unkeyed)

    spender.through(*spender.asked(), play)
    other, own = waiting(spender)
    assert (other.script, own.script) == ("other", "job")
    assert sorted(map(views.ended, requested(spender).values())) == [
        "cancelled: replaced", "cancelled: replaced", "cancelled: requested", "ready", "ready",
    ]  # fmt: skip

    # A run that has started keeps going when its key is taken over, so that a script can continue itself.
    spender.bench.clock.us += 10**10
    claims = spender.bench.claim()
    mine = next(each for each in claims if each.action_id == own.id)

    async def again(attempt: Attempt) -> None:
        await try_call(attempt, "schedule.runAt", delay=0, key="k")
        await try_call(attempt, "schedule.cancel", run=own.id)
        await try_call(attempt, "schedule.cancel", run="nothing")

    spender.end((mine, spender.run(mine, again)))
    assert spender.bench.engine.actions.get("acme", own.id).state == "done"
    (following,) = waiting(spender)
    assert following.due_at.timestamp() * 1e6 - mine.started_us == 1e6, "a chain is paced: a second at least"

    # What a caller of the API requested is not a script's to cancel or replace.
    run_in = spender.bench.engine.run_in
    keys = ["k", own.request_key.replace("\x1f", ":") if own.request_key else ""]
    others = [run_in("acme", "job", 10**6, request_key=key) for key in keys]

    async def cancels(attempt: Attempt) -> None:
        await try_call(attempt, "schedule.runAt", delay=5000, key="k")
        for run in (*(each.id for each in others), "k"):
            await try_call(attempt, "schedule.cancel", run=run)

    spender.through(*spender.asked(), cancels)
    assert {spender.bench.engine.actions.get("acme", each.id).state for each in others} == {"ready"}
    assert waiting(spender) == []


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"delay": 5, "script": "third"}, "grant run:third"),
    ({"delay": 5, "script": "x" * 300}, "grant run:x"),
    ({}, "an instant or a delay"),
    ({"delay": 5, "at": "2030-01-01T00:00:00Z"}, "an instant or a delay"),
    ({"delay": -1}, "milliseconds from 0"),
    ({"delay": True}, "milliseconds from 0"),
    ({"delay": "soon"}, "a delay is like"),
    ({"delay": "1" * 200}, "milliseconds from 0"),
    ({"delay": 367 * DAY_MS}, "366 days"),
    ({"delay": 1e300}, "milliseconds from 0"),
    ({"at": "9999-12-31T00:00:00Z"}, "366 days"),
    ({"at": "yesterday"}, "an instant must be"),
    ({"at": {"$instant": "2030-13-01T00:00:00Z"}}, "does not exist"),
    ({"delay": 5, "input": "x" * 16_384}, "16384 bytes"),
    ({"delay": 5, "input": {"$bytes": "?"}}, "Uint8Array"),
    ({"delay": 5, "key": ""}, "1 to 120"),
    ({"delay": 5, "key": "a\n"}, "1 to 120"),
    ({"delay": 5, "key": "é" * 121}, "1 to 120"),
    ({"delay": 5, "later": 1}, "no argument of this name"),
]


def test_hostile_arguments_are_refused(spender: Spender) -> None:
    async def play(attempt: Attempt) -> None:
        for arguments, said in HOSTILE:
            await try_call(attempt, "schedule.runAt", **arguments)
            assert attempt.refused is not None
            assert said in attempt.refused.message
            attempt.refused = None

    spender.through(*spender.asked(), play)
    assert requested(spender) == {}


def test_the_number_is_bounded_by_run_by_day_and_of_what_waits(
    spender: Spender, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(attempt: Attempt) -> None:
        for _ in range(25):
            await try_call(attempt, "schedule.runAt", delay=DAY_MS, line="main.js:3")

    spender.bench.engine.tenants.edit("acme", limits={"later_runs_per_day": 30})
    spender.through(*spender.asked(), play)
    assert len(waiting(spender)) == 20
    first, second = spender.asked(2)
    spender.end((first, spender.run(first, play)), (second, spender.run(second, play)))
    assert len(waiting(spender)) == 30, "the second run saw that ten were left; the other had used them"
    assert [spender.bench.engine.actions.get("acme", each.action_id).outcome for each in (first, second)] == [
        Outcome.OK, Outcome.CALL_LIMIT,
    ]  # fmt: skip

    spender.bench.engine.tenants.edit("acme", limits={})
    monkeypatch.setattr(later_runs, "MAX_WAITING", 32)
    (claim,) = spender.asked()
    spender.through(claim, play)
    ended = spender.bench.engine.actions.get("acme", claim.action_id)
    assert (ended.outcome, ended.error and ended.error.line) == (Outcome.EFFECT_REFUSED, 3)
    assert len(waiting(spender)) == 30

    async def cancels(attempt: Attempt) -> None:
        for each in waiting(spender)[:2]:
            await try_call(attempt, "schedule.cancel", run=each.id)

    spender.bench.engine.tenants.edit("acme", limits={"rows_written": 1})
    spender.through(*spender.asked(), cancels)
    assert len(waiting(spender)) == 29, "a cancellation is a statement of the commit, and counts as one"


def test_a_script_that_cannot_run_is_refused_at_the_commit(spender: Spender) -> None:
    async def play(attempt: Attempt) -> None:
        await try_call(attempt, "schedule.runAt", script="other", delay=5, input={"n": "x"})

    spender.bench.engine.scripts.put("acme", "other", "export default () => 1", params={"n": {"type": "integer"}})
    (claim,) = spender.asked()
    spender.through(claim, play)
    ended = spender.bench.engine.actions.get("acme", claim.action_id)
    assert ended.outcome is Outcome.EFFECT_REFUSED
    assert ended.error is not None
    assert "param n" in ended.error.message
    assert requested(spender) == {}
