"""What a node reserves: never more than it has, and for long runs at most half of its slots."""

from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.policy.placement import LONG, LONG_MS, MEMORY, Room, long_slots, unbounded
from lodger.sandbox.limits import MIB, Limits

runs = st.builds(
    Limits,
    wall_ms=st.sampled_from([100, LONG_MS, LONG_MS + 1, 60_000]),
    memory_bytes=st.integers(8, 200).map(MIB.__mul__),
)


@given(slots=st.integers(1, 20), memory=st.integers(8, 1000), wished=st.lists(runs, max_size=40))
def test_what_is_taken_one_by_one_never_exceeds_the_node(slots: int, memory: int, wished: list[Limits]) -> None:
    room, taken = Room(slots, long_slots(slots), memory * MIB), []
    for limits in wished:
        why = room.refuses(limits)
        assert (why is None) == room.takes(1, limits)
        if why is None and room.slots:
            room = room.without(1, limits)
            taken.append(limits)
    assert sum(limits.memory_bytes for limits in taken) <= memory * MIB
    assert sum(limits.wall_ms > LONG_MS for limits in taken) <= max(1, slots // 2)


def test_the_reason_says_what_is_short() -> None:
    short, long = Limits(), Limits(wall_ms=LONG_MS + 1)
    assert Room(4, 0, 1 << 40).refuses(long) == LONG
    assert Room(4, 0, 1 << 40).refuses(short) is None
    assert Room(4, 2, 63 * MIB).refuses(short) == MEMORY
    assert unbounded(3).takes(3, long)


@given(number=st.integers(1, 10), limits=runs, slots=st.integers(1, 10), memory=st.integers(0, 2000))
def test_many_fit_at_once_exactly_when_they_fit_one_after_the_other(
    number: int, limits: Limits, slots: int, memory: int
) -> None:
    room = Room(slots, long_slots(slots), memory * MIB)
    after, fits = room, True
    for _ in range(number):
        fits = fits and after.refuses(limits) is None
        after = after.without(1, limits)
    assert room.takes(number, limits) == fits
    assert room.without(number, limits) == after


def test_long_runs_have_half_of_the_slots_and_never_none() -> None:
    assert [long_slots(slots) for slots in (1, 2, 3, 8, 65)] == [1, 1, 1, 4, 32]
