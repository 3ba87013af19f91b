"""A careless parent's handling of attempts, for the matrix only."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.escape.matrix.weakening import Weakening

from lodger.sandbox import frames
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.workers import codec
from lodger.sandbox.workers.launcher import WorkerEnd
from lodger.sandbox.workers.verdict import Verdict
from lodger.sandbox.workers.worker_run import AttemptWatch, WorkerRun

#: Time for which frames are read after an answer, in seconds.
_LINGER_S = 0.1


class _LateWatch(AttemptWatch):
    """Deadlines that are later than they should be."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pid: int, cpu_ms: int, wall_ms: int) -> None:
        super().__init__(loop, pid)
        self._late_cpu_ms, self._late_wall_ms = cpu_ms, wall_ms

    def start(self, wall_ms: int, cpu_limit_ms: int, on_wall: Callable[[], None], on_cpu: Callable[[], None]) -> None:
        super().start(wall_ms + self._late_wall_ms, cpu_limit_ms + self._late_cpu_ms, on_wall, on_cpu)


class CarelessAttempt(WorkerRun):
    """An attempt without some checks.

    Attributes:
        believes: accepts any text as a result, and reads on after the answer.
        late_cpu_ms: delay of the CPU deadline.
        late_wall_ms: delay of the wall deadline.
        keeps_frames: keeps every stack frame of an error.
    """

    believes = keeps_frames = False
    late_cpu_ms = late_wall_ms = 0

    def __init__(self, worker: WorkerEnd, *others: Any) -> None:
        super().__init__(worker, *others)
        self._watch = _LateWatch(self._loop, worker.pid, self.late_cpu_ms, self.late_wall_ms)

    def _decide(self, found: Verdict | None) -> None:
        super()._decide(Verdict(Outcome.OK) if found is None and self._result is not None else found)

    def _frame(self, kind: int, payload: bytes) -> None:
        if self.believes and kind == frames.FAIL and payload[0]:
            outcome = Outcome(payload[1 : 1 + payload[0]].decode())
            super()._decide(Verdict(outcome, ScriptError("Error", "as the worker says")))
        else:
            super()._frame(kind, payload)

    def _failure(self, payload: bytes) -> Verdict:
        return codec.failure(payload) if self.keeps_frames else super()._failure(payload)

    def _done(self, payload: bytes) -> None:
        if not self.believes:
            super()._done(payload)
        elif self._result is None:
            self._result = payload.decode("utf-8", "replace")
            self._loop.call_later(_LINGER_S, self._decide, Verdict(Outcome.OK))


def attempt_type(weak: Weakening) -> type[WorkerRun]:
    """Return the class of attempts for a weakening."""
    lacks = {"believes": weak.host == "naive", "late_cpu_ms": weak.late_cpu_ms, "late_wall_ms": weak.late_wall_ms}
    lacks["keeps_frames"] = weak.keeps_frames
    return type("LackingAttempt", (CarelessAttempt,), lacks) if any(lacks.values()) else WorkerRun
