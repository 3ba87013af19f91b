"""A node that hardly keeps its lease holds less, never nothing, and all of it again when renewals come in time."""

from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.policy.placement import SlotReduction

#: Times after which renewals came, as parts of the time that a lease is kept for.
GAPS = st.lists(st.floats(0, 3), max_size=60)


def after(gaps: list[float], slots: int, held: SlotReduction | None = None) -> SlotReduction:
    held = held or SlotReduction()
    for gap in gaps:
        held = held.renewed(gap * 4.0, 4.0, slots)
    return held


def test_a_node_with_nothing_wrong_uses_all() -> None:
    assert after([0.3] * 20, 16).of(16) == 16


def test_each_late_renewal_halves_and_each_in_time_doubles() -> None:
    assert [after(gaps, 16).of(16) for gaps in ([0.8], [0.8, 0.8], [0.8] * 9, [0.8, 0.8, 0.3], [0.8, 0.3])] == [
        8,
        4,
        1,
        8,
        16,
    ]
    assert SlotReduction().troubled(16).of(16) == 8


@given(GAPS, st.integers(1, 500))
def test_it_never_stops_and_always_comes_back(gaps: list[float], slots: int) -> None:
    held = after(gaps, slots)
    assert 1 <= held.of(slots) <= slots
    # Ten renewals are two leases' time.
    assert after([0.3] * 10, slots, held).of(slots) == slots
