"""Named locks on both databases: one holder, leases that end, renewal, once for each slot, blocks that hold them."""

import threading
from datetime import datetime, timedelta

import pytest
from tests.chaos.processes import until
from tests.store.bench import Bench
from tests.store.virtual_clock import EPOCH

from lodger.engine import Engine as AsyncEngine
from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import InputError


def in_a_minute(bench: Bench) -> datetime:
    return from_us(bench.clock.now_us() + 60_000_000)


def test_one_has_it_until_its_lease_ends(bench: Bench) -> None:
    locks = bench.engine.locks
    mine = locks.take("rebuild", "a", "1m")
    assert mine is not None
    assert (mine.holder, mine.epoch, mine.until) == ("a", 1, in_a_minute(bench))
    assert locks.take("rebuild", "b", "1m") is None
    assert locks.take("other", "b", "1m") is not None
    bench.clock.advance(30)
    again = locks.take("rebuild", "a", "1m")
    assert again is not None
    assert (again.epoch, again.until) == (1, in_a_minute(bench)), "renewed, not taken anew"
    bench.clock.advance(61)
    assert [each.holder for each in locks.list()] == [None, None]
    assert not locks.free("rebuild", "a"), "the lease has ended"
    late = locks.take("other", "b", "1m")
    assert late is not None
    assert late.epoch == 2, "another holder may have had it meanwhile"
    theirs = locks.take("rebuild", "b", 500)
    assert theirs is not None
    assert (theirs.holder, theirs.epoch) == ("b", 2), "a write that carries epoch 1 can be told from one of now"
    assert not locks.free("rebuild", "a")
    assert locks.free("rebuild", "b")
    assert locks.take("rebuild", "a") is not None


def test_it_is_given_once_for_each_slot(bench: Bench) -> None:
    locks = bench.engine.locks
    assert locks.take("nightly", "a", slot=EPOCH) is not None
    assert locks.take("nightly", "a", slot=EPOCH) is not None, "its holder may renew it"
    assert locks.take("nightly", "b", slot=EPOCH + timedelta(days=1)) is None, "held"
    assert locks.take("nightly", "a", slot=EPOCH + timedelta(days=1)) is None, "the slot before is not over yet"
    assert locks.free("nightly", "a")
    assert locks.take("nightly", "b", slot=EPOCH) is None, "that slot was somebody's"
    assert locks.take("nightly", "b", slot=EPOCH - timedelta(days=1)) is None
    assert locks.take("nightly", "b", slot=EPOCH + timedelta(days=1)) is not None


def test_of_many_who_ask_at_once_one_has_it(bench: Bench) -> None:
    got: list[str] = []

    def ask(name: str) -> None:
        if bench.engine.locks.take("race", name, "1m") is not None:
            got.append(name)

    threads = [threading.Thread(target=ask, args=(f"h{number}",)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1
    assert [lock.holder for lock in bench.engine.locks.list()] == got


@pytest.mark.parametrize(
    ("name", "holder", "lease", "code"),
    [("", "a", 1, "lock_name_invalid"), ("a/b", "a", 1, "lock_name_invalid"), ("a", "", 1, "lock_holder_invalid"),
     ("a", "x" * 201, 1, "lock_holder_invalid"), ("a", "a", 0, "lock_lease_invalid"), ("a", "a", "25h", "lock_lease_invalid"),
     ("a", "a", -5, "lock_lease_invalid"), ("a", "a", float("1e300"), "lock_lease_invalid")],
)  # fmt: skip
def test_what_is_no_lock(bench: Bench, name: str, holder: str, lease: float, code: str) -> None:
    with pytest.raises(InputError) as refused:
        bench.engine.locks.take(name, holder, lease)
    assert refused.value.code == code
    with pytest.raises(InputError):
        bench.engine.locks.take("a", "a", "soon")


def test_a_block_holds_it_and_gives_it_back_whatever_happens(bench: Bench) -> None:
    engine = bench.engine
    with engine.lock("work") as held:
        assert held is not None
        with engine.lock("work", holder="another") as theirs:
            assert theirs is None
    with pytest.raises(ZeroDivisionError):
        _failing(bench)
    assert [lock.holder for lock in engine.locks.list()] == [None]


def _failing(bench: Bench) -> None:
    with bench.engine.lock("work", holder="another") as theirs:
        assert theirs is not None
        raise ZeroDivisionError


def test_a_block_renews_it_while_it_lasts(bench: Bench) -> None:
    locks = bench.engine.locks
    block = bench.engine.lock("work", 90, holder="me")
    for _ in range(2):  # a block can be entered again
        with block as held:
            assert held is not None
            bench.clock.advance(0.08)
            until(lambda: locks.list()[0].until > held.until, 20)


def test_a_block_that_is_entered_within_itself_renews_no_longer_than_it_lasts(bench: Bench) -> None:
    block = bench.engine.lock("work", 90, holder="me")
    with block, block:
        assert "lodger-lock-work" in {thread.name for thread in threading.enumerate()}
    assert "lodger-lock-work" not in {thread.name for thread in threading.enumerate()}
    assert [lock.holder for lock in bench.engine.locks.list()] == [None]


async def test_a_block_of_the_asynchronous_engine(bench: Bench) -> None:
    engine = AsyncEngine(bench.engine)
    with pytest.raises(TypeError, match="async with"), engine.lock("work"):
        pass
    async with engine.lock("work", "1m") as held:
        assert held is not None
        async with engine.lock("work", holder="another") as theirs:
            assert theirs is None
    assert [lock.holder for lock in await engine.locks.list()] == [None]
    engine.threads.pool.shutdown()
