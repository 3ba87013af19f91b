"""Whose turn it is: the one's who was given least is next, a share bounds each, pausing hoards nothing, memory is bounded."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from lodger.engine.server import turns
from lodger.engine.server.turns import CREDIT_S, STRANGER, Turns


class Hall:
    """Turns whose work takes as long as it is said to, on a clock that only this turns."""

    def __init__(self, most: int = 1, share: int = 1) -> None:
        self.now_s = 0.0
        self.turns = Turns(most, share, lambda: self.now_s)
        self.served: list[str] = []
        self._moved = asyncio.Event()

    async def work(self, name: str, seconds: float = 0.01) -> None:
        async with self.turns.turn(name):
            self.served.append(name)
            self._moved.set()
            await asyncio.sleep(0)
            self.now_s += seconds

    async def until(self, met: Callable[[], bool]) -> None:
        while not met():
            self._moved.clear()
            await self._moved.wait()

    def ask(self, name: str, count: int = 1, seconds: float = 0.01) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.work(name, seconds)) for _ in range(count)]


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await scene()

    asyncio.run(whole())


def test_one_request_goes_before_the_hundred_that_were_asked_before() -> None:
    async def scene() -> None:
        hall = Hall()
        await asyncio.gather(*hall.ask("crowd", 300))
        hall.served.clear()
        crowd = hall.ask("crowd", 100)
        await asyncio.sleep(0)
        await asyncio.gather(*hall.ask("neighbour"), *crowd)
        assert hall.served.index("neighbour") <= 3

    run(scene)


def test_twenty_crowds_share_and_somebody_who_asks_seldom_goes_before_them() -> None:
    async def scene() -> None:
        hall, names = Hall(), [f"crowd{number}" for number in range(20)]
        tasks = [task for name in names for task in hall.ask(name, 30)]
        await hall.until(lambda: len(hall.served) >= 200)
        assert {hall.served[:200].count(name) for name in names} == {10}
        before = len(hall.served)
        await asyncio.gather(*hall.ask("neighbour"))
        assert len(hall.served) <= before + 3
        await asyncio.gather(*tasks)

    run(scene)


def test_dear_work_is_counted_by_its_seconds_not_by_its_number() -> None:
    async def scene() -> None:
        hall = Hall()
        tasks = [*hall.ask("dear", 50, seconds=0.1), *hall.ask("cheap", 50, seconds=0.01)]
        await hall.until(lambda: hall.served.count("cheap") >= 30)
        assert hall.served.count("dear") <= 5
        await asyncio.gather(*tasks)

    run(scene)


def test_who_asked_now_and_then_in_a_quiet_hour_is_not_behind_the_credit_of_a_crowd_that_comes_fresh() -> None:
    async def scene() -> None:
        hall = Hall()
        for _ in range(100):
            await asyncio.gather(*hall.ask("neighbour"))
            hall.now_s += 0.5
        hall.served.clear()
        crowds = [task for number in range(20) for task in hall.ask(f"crowd{number}", 50)]
        await asyncio.sleep(0)
        await asyncio.gather(*hall.ask("neighbour"), *crowds)
        assert hall.served.index("neighbour") <= 3, "one goes before many"

    run(scene)


def test_who_pauses_is_ahead_by_the_credit_and_no_more() -> None:
    async def scene() -> None:
        hall = Hall()
        await asyncio.gather(*hall.ask("back", 1))
        await asyncio.gather(*hall.ask("busy", 1000))  # ten seconds of work while the other pauses
        hall.served.clear()
        tasks = [*hall.ask("busy", 300), *hall.ask("back", 300)]
        await hall.until(lambda: len(hall.served) >= 300)
        ahead = hall.served.count("back") - hall.served.count("busy")
        assert CREDIT_S / 0.01 * 0.9 <= ahead <= CREDIT_S / 0.01 * 1.1
        await asyncio.gather(*tasks)

    run(scene)


def test_strangers_are_ahead_of_nobody() -> None:
    async def scene() -> None:
        hall = Hall()
        await asyncio.gather(*hall.ask("known", 100), *hall.ask("other", 100))
        hall.served.clear()
        strangers = [task for number in range(50) for task in hall.ask(f"{STRANGER}{number}")]
        await asyncio.sleep(0)
        await asyncio.gather(*hall.ask("seldom"), *strangers)
        assert hall.served.index("seldom") <= 3

    run(scene)


def test_one_name_has_its_share_and_what_is_left_is_anothers() -> None:
    async def scene() -> None:
        hall, over = Hall(most=5, share=2), asyncio.Event()
        inside: list[str] = []

        async def hold(name: str) -> None:
            async with hall.turns.turn(name):
                inside.append(name)
                await over.wait()

        tasks = [asyncio.create_task(hold(name)) for name in ("a",) * 10 + ("b",) * 10 + ("c",)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert sorted(inside) == ["a", "a", "b", "b"]
        over.set()
        await asyncio.gather(*tasks)
        assert sorted(inside) == ["a"] * 10 + ["b"] * 10 + ["c"]

    run(scene)


@pytest.mark.parametrize("late", [False, True], ids=["while it waits", "when its turn has come"])
def test_who_goes_away_leaves_no_turn_behind(late: bool) -> None:
    async def scene() -> None:
        hall, over = Hall(), asyncio.Event()

        async def hold() -> None:
            async with hall.turns.turn("first"):
                await over.wait()

        first = asyncio.create_task(hold())
        await asyncio.sleep(0)
        gone = hall.ask("gone")[0]
        await asyncio.sleep(0)
        if late:
            over.set()
            await first
        gone.cancel()
        over.set()
        with suppress(asyncio.CancelledError):
            await gone
        await first
        async with asyncio.timeout(120):
            await asyncio.gather(*hall.ask("next", 3))

    run(scene)


def test_names_that_are_over_are_forgotten_and_those_that_wait_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "KEPT", 200)

    async def scene() -> None:
        hall, over = Hall(), asyncio.Event()

        async def hold() -> None:
            async with hall.turns.turn("held"):
                await over.wait()

        held = asyncio.create_task(hold())
        await asyncio.sleep(0)
        waiting = [task for number in range(50) for task in hall.ask(f"w{number}")]
        await asyncio.sleep(0)
        over.set()
        for number in range(1000):
            await asyncio.gather(*hall.ask(f"n{number}"))
        await asyncio.gather(held, *waiting)
        assert len(hall.turns) <= 200 + 50
        assert sorted(name for name in hall.served if name.startswith("w")) == sorted(f"w{n}" for n in range(50))

    run(scene)


def test_the_last_turn_is_for_somebody_who_was_given_little() -> None:
    async def scene() -> None:
        hall, over = Hall(most=4, share=2), asyncio.Event()
        await asyncio.gather(*hall.ask("crowd0", 200), *hall.ask("crowd1", 200), *hall.ask("neighbour"))

        async def hold(name: str) -> None:
            async with hall.turns.turn(name):
                hall.served.append(name)
                await over.wait()

        hall.served.clear()
        held = [asyncio.create_task(hold(f"crowd{number}")) for number in (0, 0, 1, 1)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(hall.served) == 3
        await asyncio.wait_for(asyncio.gather(*hall.ask("neighbour")), 60)
        assert hall.served[3:] == ["neighbour"], "while three of four are held and one of the crowd waits"
        over.set()
        await asyncio.gather(*held)
        assert hall.served[4:] == ["crowd1"]

    run(scene)
