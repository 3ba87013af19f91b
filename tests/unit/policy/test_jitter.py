"""Laws of jitter: the same every time, never as late as the next slot, regular slots stay regular, order is kept."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.policy.conduct import delay, hash_fraction

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
seconds = st.integers(1, 10_000_000).map(lambda ms: timedelta(milliseconds=ms))


@given(seed=st.text(max_size=40), jitter=seconds, gaps=st.lists(seconds, min_size=2, max_size=20))
def test_no_delay_reaches_the_next_slot_and_order_is_kept(seed: str, jitter: timedelta, gaps: list[timedelta]) -> None:
    slots = [NOW]
    for gap in gaps:
        slots.append(slots[-1] + gap)
    following = [*slots[1:], None]
    due = [slot + delay(seed, jitter, slot, after) for slot, after in zip(slots, following, strict=True)]
    assert due == sorted(set(due))
    for slot, at, after in zip(slots, due, following, strict=True):
        assert slot <= at < slot + jitter
        assert after is None or at < after


@given(seed=st.text(max_size=40), jitter=seconds, gap=seconds)
def test_a_regular_schedule_stays_regular(seed: str, jitter: timedelta, gap: timedelta) -> None:
    first = delay(seed, jitter, NOW, NOW + gap)
    assert delay(seed, jitter, NOW + 7 * gap, NOW + 8 * gap) == first


def test_schedules_spread_over_the_jitter() -> None:
    """Of a thousand schedules that name one instant each tenth of the jitter gets its part."""
    tenths = [0] * 10
    for number in range(1000):
        tenths[int(delay(f"s{number}", timedelta(minutes=10), NOW, None) / timedelta(minutes=1))] += 1
    assert min(tenths) > 50


def test_the_share_is_the_same_on_every_machine() -> None:
    assert hash_fraction("0190163d-8694-739b-aea5-966c26f8ad91") == 0x5090B78C
