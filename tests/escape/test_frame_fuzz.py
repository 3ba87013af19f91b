"""Fuzzing of frames: ten thousand mutations give a verdict, no exception, constant memory. ``lodger bench frames`` runs a million."""

import pytest
from tests.e2e.ready import lodger

from lodger.bench import frames
from lodger.bench.frames import MAX_GROWN_BYTES, SLOWEST_S, fuzz
from lodger.sandbox.workers import worker_run
from lodger.sandbox.workers.verdict import Verdict


def test_short_run() -> None:
    tally = fuzz(20_000)
    assert tally.faults == []
    assert tally.frames >= 20_000
    assert tally.grown_bytes < MAX_GROWN_BYTES
    assert tally.slowest_s < SLOWEST_S
    assert len(tally.outcomes) >= 5, tally.outcomes


def test_a_parent_that_goes_on_after_the_first_error_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lenient(worker_run.WorkerRun):
        def _decide(self, found: Verdict | None) -> None:
            if found is None or found.outcome != "protocol_error":
                super()._decide(found)

    monkeypatch.setattr(frames, "WorkerRun", Lenient)
    assert not fuzz(3_000).outcomes["protocol_error"]


def test_a_parent_that_still_calls_after_its_verdict_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(worker_run.WorkerRun):
        def _end(self) -> None:
            super()._end()
            self._host.asked.append(("late", "1"))  # type: ignore[attr-defined]  # the suite's own host

    monkeypatch.setattr(frames, "WorkerRun", Late)
    assert any("already had a verdict" in fault for fault in fuzz(500).faults)


def test_the_verb() -> None:
    said = lodger("bench", "frames", "--frames", "2000", "--seed", "7", "--check", "--json")
    assert said.code == 0, said
    body = said.json
    assert body["holds"]
    assert body["frames"] >= 2000
    assert body["faults"] == []
