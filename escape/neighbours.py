"""The neighbour: a benign run of another tenant after every attack, which must have its usual result and time."""

import statistics
from pathlib import Path

from lodger.escape import modules
from lodger.escape.evidence import within
from lodger.sandbox.job import Bundle, Job, Report
from lodger.sandbox.outcome import Outcome

SCRIPT = Path(__file__).with_suffix(".js").read_text("utf-8")
ID = "neighbour"
_CONTEXT = f'{{"action":{{"id":"{ID}"}}}}'

_FIRST = 5
_TIMES, _FLOOR_MS = 20, 500.0


class Neighbour:
    """The benign run on one runtime, with its result and usual time."""

    def __init__(self, runtime: str) -> None:
        self._runtime = runtime
        self._answer: str | None = None
        self._usual: list[float] = []

    def job(self) -> Job | None:
        """Return the job of the benign run; None for ``engine``."""
        if self._runtime == "engine":
            return None
        if self._runtime == "wasm":
            return Job(Bundle({}, _CONTEXT, wasm=modules.neighbour()), tag=ID, tenant=ID)
        return Job(Bundle({"main.js": SCRIPT}, _CONTEXT), tag=ID, tenant=ID)

    def judge(self, report: Report, ms: float) -> str:
        """Return what is wrong with a report, in words; "" if nothing. Raises Slow or Escaped if it took too long."""
        if report.outcome is not Outcome.OK or report.result is None:
            return f"the next run of another tenant ended as {report.outcome}"
        if self._answer is None:
            self._answer = report.result
        if report.result != self._answer:
            return "the next run of another tenant returned another result"
        if len(self._usual) < _FIRST:
            self._usual.append(ms)
        else:
            within("ms for the next run of another tenant", ms, _TIMES * statistics.median(self._usual) + _FLOOR_MS)
        return ""
