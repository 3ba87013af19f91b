"""Who is let in next: few in each turn of the event loop, the one who was let in least before the others."""

import asyncio
from collections.abc import Callable

import pytest

from lodger.engine.server import porter
from lodger.engine.server.porter import A_TURN, CREDIT, Porter
from lodger.engine.server.turns import STRANGER


class Entry:
    """A porter, and who was let in by him, in which turn of the loop."""

    def __init__(self) -> None:
        self.porter = Porter()
        self.turn = 0
        self.came: list[tuple[str, int]] = []

    def offer(self, name: str, count: int = 1, weight: int = 1) -> None:
        for _ in range(count):
            self.porter.offer(name, lambda: self.came.append((name, self.turn)), weight)

    async def next(self) -> None:
        self.turn += 1
        await asyncio.sleep(0)

    async def all(self, count: int) -> list[str]:
        while len(self.came) < count:
            await self.next()
        return [name for name, _ in self.came]


def scene(play: Callable[[Entry], object]) -> None:
    async def whole() -> None:
        await play(Entry())  # type: ignore[misc]  # each is a coroutine function

    asyncio.run(whole())


def test_who_asks_seldom_goes_before_the_hundreds_that_came_before() -> None:
    async def play(entry: Entry) -> None:
        entry.offer("crowd", 300)
        entry.offer("neighbour")
        assert (await entry.all(301)).index("neighbour") == A_TURN

    scene(play)


def test_a_turn_of_the_loop_lets_in_a_few() -> None:
    async def play(entry: Entry) -> None:
        entry.offer("crowd", 50)
        await entry.all(50)
        turns = [turn for _, turn in entry.came]
        assert max(turns.count(turn) for turn in set(turns)) == A_TURN
        entry.came.clear()
        await entry.next()
        await entry.next()
        entry.offer("heavy", 5, A_TURN)
        await entry.all(5)
        assert len({turn for _, turn in entry.came}) == 5

    scene(play)


def test_while_nobody_waits_nobody_is_kept() -> None:
    async def play(entry: Entry) -> None:
        for _ in range(10):
            entry.offer("one")
            assert len(entry.came) == entry.turn + 1
            await entry.next()
            await entry.next()
            entry.turn -= 1

    scene(play)


def test_crowds_share_and_strangers_wait_behind_the_known_but_not_for_ever() -> None:
    async def play(entry: Entry) -> None:
        entry.offer("busy", 40)
        entry.offer(STRANGER + "192.0.2.1", 40)
        entry.offer(STRANGER + "192.0.2.2", 40)
        entry.offer("known")
        said = await entry.all(121)
        assert said.index("known") == A_TURN
        middle = said[A_TURN + 1 : A_TURN + 91]
        assert all(middle.count(name) >= 20 for name in ("busy", STRANGER + "192.0.2.1", STRANGER + "192.0.2.2"))

    scene(play)


def test_who_asked_now_and_then_is_not_behind_the_credit_of_those_who_come_fresh() -> None:
    async def play(entry: Entry) -> None:
        for _ in range(100):
            entry.offer("neighbour")
            await entry.next()
            await entry.next()
        entry.came.clear()
        for number in range(20):
            entry.offer(f"crowd{number}", 20)
        entry.offer("neighbour")
        assert (await entry.all(401)).index("neighbour") <= 2 * A_TURN, "one goes before many"

    scene(play)


def test_while_it_is_full_inside_who_is_ahead_goes_in_and_of_the_others_one_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(porter, "TRICKLE_S", 3600.0)
    full = True

    async def play(entry: Entry) -> None:
        nonlocal full
        entry.porter = Porter(lambda: full)
        entry.offer("crowd", 100)
        for _ in range(200):
            await entry.next()
        before = len(entry.came)
        assert before <= CREDIT // 2 + 2, "what is ahead of the others, and one"
        entry.offer("neighbour")
        for _ in range(2):
            await entry.next()
        assert [name for name, _ in entry.came[before:]] == ["neighbour"]
        monkeypatch.setattr(porter, "TRICKLE_S", 0.0)
        entry.porter._trickle_s = 0.0
        await entry.all(101)
        full = False
        entry.offer("crowd", 100)
        await entry.all(201)

    scene(play)


def test_a_pause_hoards_no_more_than_its_credit() -> None:
    async def play(entry: Entry) -> None:
        entry.offer("rested")
        entry.offer("busy", 1000)
        await entry.all(1001)
        entry.came.clear()
        entry.offer("busy", 400)
        entry.offer("rested", 400)
        said = (await entry.all(800))[: 4 * CREDIT]
        assert CREDIT - 2 * A_TURN <= said.count("rested") - said.count("busy") <= CREDIT + 2 * A_TURN

    scene(play)


def test_what_fails_on_its_way_in_keeps_nobody_behind_it() -> None:
    async def play(entry: Entry) -> None:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["exception"]))

        def fail() -> None:
            raise RuntimeError("one")

        entry.offer("crowd", A_TURN)
        entry.porter.offer("crowd", fail)
        entry.offer("crowd", 20)
        await entry.all(A_TURN + 20)
        assert [str(each) for each in told] == ["one"]

    scene(play)


def test_the_names_it_keeps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(porter, "KEPT", 200)

    async def play(entry: Entry) -> None:
        entry.offer("crowd", 100)
        for number in range(1000):
            entry.offer(f"n{number}")
        assert len(entry.porter) >= 900, "who waits is not forgotten"
        await entry.all(1100)
        for number in range(1000):
            entry.offer(f"m{number}")
            await entry.next()
        assert len(entry.porter) <= 201
        assert entry.porter.waiting == 0

    scene(play)
