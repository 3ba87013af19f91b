"""Mutated frames by the ten thousand: always a verdict, never an exception, memory flat. The million is a verb of frame_fuzz."""

from tests.escape.frame_fuzz import fuzz


def test_short_run() -> None:
    tally = fuzz(20_000)
    assert tally.faults == []
    assert tally.frames >= 20_000
    assert tally.grown_bytes < 32 << 20
    assert len(tally.outcomes) >= 5, tally.outcomes
    assert tally.slowest_kill_s < 1.0
