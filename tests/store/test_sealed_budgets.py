"""Sealed runs and budgets: what such a run will have written counts from the moment it is sealed, on that day, until it is settled."""

from typing import Any

import pytest
from tests.databases.fixtures import place
from tests.store.bench import Bench
from tests.store.platform_database import PlatformDatabase, call

from lodger.engine.effects.foreign_commit import Receipt
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.usage import budget_reservations
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

DAY = 86_400
__all__ = ["place"]


@pytest.fixture
def far(place: str, bench: Bench) -> PlatformDatabase:  # in this order: the place outlives the connections to it
    made = PlatformDatabase(bench, place)
    made.engine.tenants.edit("one", limits={"mails_per_day": 3})
    return made


def mails(number: int, key: str = "k", size: int = 1) -> Any:
    async def play(attempt: Attempt) -> None:
        await call(attempt, "db.increment", set="orders", id=2, amounts={"items": 1})
        await call(attempt, "kv.set", key=key, value="x" * size)
        for _ in range(number):
            await call(attempt, "mail.send", to=["x@example.com"], subject="s", text="t", line="main.js:4")

    return play


def used(far: PlatformDatabase) -> list[tuple[int, int, int]]:
    """By day: runs, mails, rows written."""
    days = far.engine.tenants.usage("one").days
    return [(each.runs, each.counts["mails"], each.counts["rows_written"]) for each in days]


def state(far: PlatformDatabase, asked: str) -> str:
    return far.engine.actions.get(None, asked).state


@pytest.mark.parametrize("guarded", [True, False])
def test_what_is_sealed_leaves_no_more_than_the_rest(
    far: PlatformDatabase, guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not guarded:
        monkeypatch.setattr(budget_reservations, "add", lambda *_args: None)
    first, second, third = far.ask(), far.ask(), far.ask()
    _committed, one = far.seal(mails(2))
    assert one is not None
    assert used(far) == []
    committed, two = far.seal(mails(2, "other"))
    if not guarded:
        assert two is not None, "both were sealed, and four mails will go out"
        return
    assert two is None
    (ended,) = committed.settled
    assert (ended.action_id, ended.outcome) == (second, Outcome.CALL_LIMIT)
    error = far.engine.actions.get(None, second).error
    assert error is not None
    assert "budget mails is 3 per day" in error.message
    assert "2 used, 2 more requested" in error.message
    assert error.line == 4
    _committed, last = far.seal(mails(1, "third"))
    assert last is not None
    for each in (one, last):
        far.settle(each, far.apply(each))
    assert [state(far, asked) for asked in (first, third)] == ["done", "done"]
    assert used(far) == [(3, 3, 4)]
    assert far.bench.scalar("SELECT count(*) FROM lodger_lots") == 0


def test_it_counts_on_the_day_it_was_sealed_on_however_late_it_is_settled(far: PlatformDatabase) -> None:
    far.ask()
    _committed, one = far.seal(mails(3))
    assert one is not None
    far.bench.clock.advance(DAY)
    done = far.settle(one, far.apply(one))
    assert done is not None
    assert [(each.budget, each.used) for each in done.warned] == [("mails", 3)]
    assert used(far) == [(0, 3, 2), (1, 0, 0)]
    far.ask()
    _committed, two = far.seal(mails(3))
    assert two is not None, "today nothing was used"


def test_what_could_not_be_applied_is_free_again(far: PlatformDatabase) -> None:
    far.ask()
    _committed, one = far.seal(mails(3))
    assert one is not None
    error = ScriptError("EffectRefused", "no")
    far.settle(one, Receipt(Outcome.EFFECT_REFUSED, error))
    assert used(far) == [(1, 0, 0)]
    far.engine.actions.replay(None, far.bench.actions()[0].id)
    _committed, two = far.seal(mails(3))
    assert two is not None
