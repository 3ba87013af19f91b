"""Budgets of a day: exact however many nodes draw on them at once, charged to the right day, refused with the row that says so."""

import asyncio
from contextlib import nullcontext
from datetime import date
from typing import Any

import pytest
from tests.store.bench import Bench
from tests.store.spending import Spender, fetch, mail, try_call

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.execution import Claim
from lodger.engine.effects import cancelled_usage
from lodger.engine.effects.budget_checks import BudgetChecks
from lodger.engine.effects.finished import Finished
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.lifecycle import leases
from lodger.engine.store.usage import budget_reservations, usage
from lodger.engine.store.usage.budget_reservations import ReservationRequest
from lodger.sandbox.outcome import Outcome

DAY = 86_400


@pytest.fixture
def spender(bench: Bench) -> Spender:
    return Spender(bench)


async def one_of_each(attempt: Attempt) -> None:
    """Make one call of every kind that a budget counts."""
    await try_call(attempt, "db.insert", set="notes", values={"text": "x"})
    await try_call(attempt, "kv.set", key="k", value=1)
    await try_call(attempt, "kv.get", key="other")
    await try_call(attempt, "db.find", set="notes")
    await mail(attempt, "a@x.example", "b@x.example")
    await try_call(attempt, "events.emit", name="order.paid", data=1)
    await fetch(attempt, 1)


ALL = {
    "calls": 7,
    "queries": 2,
    "rows_read": 1,
    "rows_written": 2,
    "mails": 2,
    "events": 1,
    "fetches": 1,
    "fetch_bytes": 5,
}
#: What had happened already when the run failed.
GONE = {"calls": 7, "queries": 2, "rows_read": 1, "fetches": 1, "fetch_bytes": 5}


@pytest.mark.parametrize(
    ("outcome", "charged"),
    [(Outcome.OK, ALL), (Outcome.SCRIPT_ERROR, GONE), (Outcome.CANCELLED, GONE), (Outcome.ENGINE_FAULT, None)],
)
def test_what_a_run_used_is_charged_by_what_became_of_it(
    spender: Spender, outcome: Outcome, charged: dict[str, int] | None
) -> None:
    spender.tenant()
    (claim,) = spender.asked()
    spender.through(claim, one_of_each, outcome)
    if charged is None:
        assert spender.bench.engine.tenants.usage("acme").days == ()
        return
    found = spender.used()
    assert (found.pop("bytes_written", None) is not None) is (outcome is Outcome.OK)
    assert found == charged
    (day,) = spender.bench.engine.tenants.usage("acme").days
    assert (day.day, day.runs) == (from_us(spender.bench.clock.us).date(), 1)


@pytest.mark.parametrize("together", [True, False], ids=["one batch", "one after another"])
@pytest.mark.parametrize(
    ("limit", "play"),
    [
        ("mails", lambda attempt: mail(attempt, "a@x.example", "b@x.example")),
        ("events", lambda attempt: emit(attempt, 2)),
        ("rows_written", lambda attempt: write_values(attempt, 2)),
    ],
)
def test_what_was_free_when_each_began_is_not_used_twice(
    spender: Spender, limit: str, play: Any, together: bool
) -> None:
    spender.tenant(**{f"{limit}_per_day": 5})
    ends = [(claim, spender.run(claim, play)) for claim in spender.asked(4)]
    for batch in [ends] if together else [[each] for each in ends]:
        spender.end(*batch)
    assert spender.used()[limit] == 4
    over = [action for action in spender.bench.actions() if action.state == "failed"]
    assert len(over) == 2
    for action in over:
        assert action.outcome is Outcome.CALL_LIMIT
        assert action.error is not None
        assert f"budget {limit} is 5 per day" in action.error.message
        assert "4 used, 2 more requested" in action.error.message
        assert (action.error.file, action.error.line) == ("main.js", 3)
    table = {"mails": "lodger_outbox", "events": "lodger_outbox", "rows_written": "lodger_kv"}[limit]
    kept = spender.bench.scalar(f"SELECT count(*) FROM {table}")
    assert kept == {"mails": 2, "events": 0, "rows_written": 4}[limit]


async def emit(attempt: Attempt, number: int) -> None:
    for index in range(number):
        assert await try_call(attempt, "events.emit", name="order.paid", data=index, line="main.js:3") is None


async def write_values(attempt: Attempt, number: int) -> None:
    for index in range(number):
        await try_call(attempt, "kv.set", key=f"{attempt.claim.action_id} {index}", value=index, line="main.js:3")


def test_without_the_look_at_the_commit_they_are(spender: Spender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BudgetChecks, "admit", lambda *_args: nullcontext())
    spender.tenant(mails_per_day=5)
    ends = [(claim, spender.run(claim, mail)) for claim in spender.asked(8)]
    spender.end(*ends)
    assert spender.used()["mails"] == 8


@pytest.mark.parametrize("guarded", [True, False])
def test_no_request_leaves_beyond_the_day_whoever_makes_it(
    spender: Spender, guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not guarded:
        monkeypatch.setattr(budget_reservations, "reserved", lambda *_args: {})
    spender.tenant(fetches_per_day=7)
    claims = spender.asked(4)
    refused: list[Any] = []

    async def busy(attempt: Attempt) -> None:
        answers = await asyncio.gather(*(fetch(attempt, number) for number in range(4)))
        refused.extend(found for found in answers if found != 200)

    async def all_at_once() -> list[tuple[Claim, Finished]]:
        return list(zip(claims, await asyncio.gather(*(spender.play(claim, busy) for claim in claims)), strict=True))

    ends = asyncio.run(all_at_once())
    if not guarded:
        assert spender.sent > 7, "each took what all had"
        return
    assert spender.sent == 7
    assert {code for code, _row in refused} == {"budget_exceeded"}
    assert {(row["budget"], row["per"], row["limit"]) for _code, row in refused} == {("fetches", "day", 7)}
    spender.end(*ends)
    assert spender.used()["fetches"] == 7
    assert spender.bench.scalar("SELECT count(*) FROM lodger_lots") == 0
    (later,) = spender.asked()
    spender.bench.clock.advance(DAY)
    (tomorrow,) = spender.asked()
    spender.through(tomorrow, busy)
    assert spender.sent == 11
    spender.bench.commit(later)


def test_what_an_attempt_holds_comes_back_however_it_ends(spender: Spender) -> None:
    bench = spender.bench
    spender.tenant(fetches_per_day=1000)

    def held() -> object:
        return bench.scalar("SELECT coalesce(sum(amount), 0) FROM lodger_lots")

    async def one(attempt: Attempt) -> None:
        await fetch(attempt, 1)

    done, failed, cancelled, lost, again = spender.asked(5)
    ends = {claim.action_id: spender.run(claim, one) for claim in (done, failed, cancelled, lost, again)}
    assert held() == 25
    spender.end((done, ends[done.action_id]))
    spender.end((failed, failing_commit(ends[failed.action_id])))
    assert held() == 15
    bench.engine.actions.cancel(None, cancelled.action_id)
    assert held() == 15, "its node has not said yet what it used"
    with bench.engine.context.database.write() as connection:
        left = [(cancelled, ends[cancelled.action_id])]
        assert cancelled_usage.write(bench.engine.context, connection, bench.lease(), left, bench.clock.us)
    assert held() == 10
    with bench.engine.context.database.write() as connection:
        losses = [(lost, ends[lost.action_id])]
        assert cancelled_usage.write(bench.engine.context, connection, bench.lease(), losses, bench.clock.us) == []
    bench.clock.advance(1000)
    bench.rescue()
    assert held() == 0
    assert spender.used()["fetches"] == 2
    wish = ReservationRequest("acme", lost.action_id, lost.attempt, bench.clock.us // usage.DAY_US, "fetches", 1, 5)
    with bench.engine.context.database.write() as connection:
        assert budget_reservations.reserve(bench.engine.context, connection, [wish]) == [0], (
            "it is this attempt's no more"
        )


@pytest.mark.parametrize("gone", ["lease taken over", "begun anew", "stopped"])
def test_the_share_of_a_cancelled_attempt_comes_back_when_its_node_is_gone(spender: Spender, gone: str) -> None:
    """Nothing of it can be charged any more: the node that knew what was used has no lease to report it under."""
    bench = spender.bench
    spender.tenant(fetches_per_day=1000)

    async def one(attempt: Attempt) -> None:
        await fetch(attempt, 1)

    cancelled, running = spender.asked(2)
    for claim in (cancelled, running):
        spender.run(claim, one)
    bench.engine.actions.cancel(None, cancelled.action_id)
    assert bench.scalar("SELECT sum(amount) FROM lodger_lots") == 10
    lease = bench.lease()
    if gone == "lease taken over":
        bench.clock.advance(1000)
        bench.rescue()
    else:
        with bench.engine.context.database.write() as connection:
            if gone == "stopped":
                leases.unregister(connection, lease, bench.clock.us)
            else:
                leases.register(bench.engine.context, connection, lease.node_id, "n1", bench.clock.us)
    assert bench.scalar("SELECT count(*) FROM lodger_lots") == 0


def failing_commit(ended: Finished) -> Finished:
    """Return the end of an attempt whose commit failed."""
    from lodger.engine.effects.outcome_commit import failed_commit

    return failed_commit(ended, ValueError("x"))


def test_over_midnight_each_thing_counts_on_the_day_it_happened_on(spender: Spender) -> None:
    spender.tenant(fetches_per_day=10, mails_per_day=10)
    bench = spender.bench
    bench.clock.us = (bench.clock.us // usage.DAY_US + 1) * usage.DAY_US - 1_000_000
    (claim,) = spender.asked()
    ended = spender.run(claim, one_of_each)
    bench.clock.advance(2)
    spender.end((claim, ended))
    before, after = bench.engine.tenants.usage("acme").days
    assert (before.runs, before.counts["fetches"], before.counts["mails"]) == (0, 1, 0)
    assert (after.runs, after.counts["fetches"], after.counts["mails"]) == (1, 0, 2)


def test_a_tenant_is_warned_once_at_four_fifths(spender: Spender) -> None:
    spender.tenant(mails_per_day=10, fetches_per_day=5, runs_per_day=100)
    warned = []

    async def three(attempt: Attempt) -> None:
        for number in range(3):
            await mail(attempt)
            await fetch(attempt, number)

    for _ in range(3):
        (claim,) = spender.asked()
        warned += [(each.budget, each.limit, each.used) for each in spender.through(claim, three).warned]
    assert warned == [("fetches", 5, 5), ("mails", 10, 9)]


def test_usage_is_told_by_day_with_what_is_left(spender: Spender) -> None:
    bench = spender.bench
    spender.tenant(mails_per_day=10)
    for _ in range(3):
        (claim,) = spender.asked()
        spender.through(claim, mail)
        bench.clock.advance(DAY)
    days = bench.engine.tenants.usage("acme").days
    assert [each.runs for each in days] == [1, 1, 1]
    assert bench.engine.tenants.usage("acme", days[1].day, str(days[1].day)).days == days[1:2]
    assert bench.engine.tenants.usage("acme", since=days[2].day).days == days[2:]
    (claim,) = spender.asked()
    spender.through(claim, mail)
    rows = {each.budget: each for each in bench.engine.tenants.usage("acme").budgets}
    assert (rows["mails"].per, rows["mails"].used, rows["mails"].limit) == ("day", 1, 10)
    assert rows["queries"].limit is None
    assert (rows["storage_bytes"].per, rows["storage_bytes"].limit) == ("tenant", 1 << 30)
    for wrong in ("yesterday", "2027-13-01"):
        with pytest.raises(InputError, match="is not a day"):
            bench.engine.tenants.usage("acme", wrong)
    with pytest.raises(InputError, match="an instant"):
        bench.engine.tenants.usage("acme", from_us(bench.clock.us))
    with pytest.raises(InputError, match="after"):
        bench.engine.tenants.usage("acme", date(2027, 1, 2), date(2027, 1, 1))
    with pytest.raises(NotFound):
        bench.engine.tenants.usage("nobody")


def test_a_tenants_own_budgets_and_a_schedules_narrower_ones_reach_its_runs(spender: Spender) -> None:
    bench = spender.bench
    spender.tenant(queries=50, rows_read=20_000)
    bench.engine.schedules.create("acme", "s", script="job", rules="every 60s", limits={"queries": 7, "cpu_ms": 100})
    bench.clock.advance(60)
    bench.tick()
    (claim,) = bench.claim()
    assert (claim.budgets["queries"], claim.budgets["rows_read"], claim.budgets["mails"]) == (7, 20_000, 100)
    assert claim.limits.cpu_ms == 100
    for wrong in ({"queries": -1}, {"queries": "many"}, {"fetches": True}):
        with pytest.raises(InputError, match="limit"):
            bench.engine.schedules.create("acme", "t", script="job", rules="every 60s", limits=wrong)
        with pytest.raises(InputError, match="limit"):
            bench.engine.tenants.edit("acme", limits=wrong)


def test_who_is_refused_because_others_hold_the_rest_is_told_that_it_is_used(spender: Spender) -> None:
    spender.tenant(fetches_per_day=6)
    holding, asking = spender.asked(2)

    async def five(attempt: Attempt) -> None:
        for number in range(5):
            assert await fetch(attempt, number) == 200

    ended = spender.run(holding, five)
    reported: list[Any] = []

    async def two(attempt: Attempt) -> None:
        reported.extend([await fetch(attempt, 1), await fetch(attempt, 2), await try_call(attempt, "limits.get")])

    spender.end((asking, spender.run(asking, two)), (holding, ended))
    assert reported[0] == 200
    assert reported[1] == ("budget_exceeded", {"budget": "fetches", "per": "day", "limit": 6, "used": 6, "asked": 1})
    assert reported[2]["day"] == {"fetches": {"limit": 6, "used": 6, "left": 0}, "mails": {"limit": 1000, "used": 0, "left": 1000},
                              "events": {"limit": 10_000, "used": 0, "left": 10_000},
                              "later_runs": {"limit": 10_000, "used": 0, "left": 10_000}}  # fmt: skip
    assert spender.used()["fetches"] == 6
