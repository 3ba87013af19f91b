"""Mutated frames by the ten thousand: always a verdict, never an exception, memory flat. A million is ``lodger bench frames``."""

import pytest
from tests.e2e.command import lodger

from lodger.bench.frames import MOST_GROWN_BYTES, SLOWEST_S, fuzz
from lodger.sandbox.workers import attempt


def test_short_run() -> None:
    tally = fuzz(20_000)
    assert tally.faults == []
    assert tally.frames >= 20_000
    assert tally.grown_bytes < MOST_GROWN_BYTES
    assert tally.slowest_s < SLOWEST_S
    assert len(tally.outcomes) >= 5, tally.outcomes


def test_a_parent_that_goes_on_after_the_first_error_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(self: attempt.Attempt, found: object) -> None:
        if found is None or getattr(found, "outcome", None) != "protocol_error":
            real(self, found)  # type: ignore[arg-type]  # what it is given it hands on

    real = attempt.Attempt._decide
    monkeypatch.setattr(attempt.Attempt, "_decide", lenient)
    assert not fuzz(3_000).outcomes["protocol_error"]


def test_a_parent_that_still_calls_after_its_verdict_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = attempt.Attempt._end

    def late(self: attempt.Attempt) -> None:
        real(self)
        self._host.asked.append(("late", "1"))  # type: ignore[attr-defined]  # the suite's own host

    monkeypatch.setattr(attempt.Attempt, "_end", late)
    assert any("judged" in fault for fault in fuzz(500).faults)


def test_the_verb() -> None:
    said = lodger("bench", "frames", "--frames", "2000", "--seed", "7", "--check", "--json")
    assert said.code == 0, said
    body = said.json
    assert body["holds"]
    assert body["frames"] >= 2000
    assert body["faults"] == []
    again = lodger("bench", "frames", "--frames", "2000", "--seed", "7")
    assert "holds" in again.out
