"""Next slot of RRULE sets, typical and hostile, beside python-dateutil in the same run.

    python bench/developer/recurrence.py [--json]

Microseconds per question: ``read`` parses and asks once (tables are made then), ``median`` and ``worst`` are over many
instants of a compiled rule (three passes in random order, the fastest counts; a rule found never to fire says so at
once), ``theirs`` is dateutil's ``after`` from the
same DTSTART, given up after half a second; ``ratio`` is theirs over our median.
"""

import json
import signal
import statistics
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from dateutil.rrule import rrulestr

from lodger.engine.recurrence import rrule

sys.path.append(str(Path(__file__).resolve().parents[2]))
from tests.unit.recurrence.hostile_schedules import HOSTILE, TYPICAL

NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
GIVE_UP_S = 0.5


class GaveUp(Exception):
    pass


def _give_up(*_: object) -> None:
    raise GaveUp


def theirs(text: str) -> float | None:
    """Microseconds of dateutil's answer; None when it gave up or refuses the rule."""
    local = NOW.replace(tzinfo=None) if "TZID" not in text else NOW
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, GIVE_UP_S)
    try:
        start = perf_counter()
        rrulestr(text, dtstart=None if "DTSTART" in text else datetime.fromisoformat("1900-01-01")).after(local)
        return (perf_counter() - start) * 1e6
    except (GaveUp, ValueError):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def measured(text: str) -> dict[str, Any]:
    start = perf_counter()
    rule = rrule.parse(text)
    rule.next_after(NOW)
    read = (perf_counter() - start) * 1e6
    instants = [NOW + timedelta(seconds=97_003 * n) for n in range(-100, 900)]
    Random(1).shuffle(instants)  # a rule remembers its last answer; no question here follows its own
    forwards, backwards = [1e9] * len(instants), [1e9] * len(instants)
    for _ in range(3):
        for i, instant in enumerate(instants):
            for ask, best in ((rule.next_after, forwards), (rule.previous_before, backwards)):
                start = perf_counter()
                ask(instant)
                best[i] = min(best[i], (perf_counter() - start) * 1e6)
    their = theirs(text)
    median = statistics.median(forwards)
    return {
        "rule": text.replace("\n", " ")[:90],
        "read": round(read),
        "median": round(median, 1),
        "worst": round(max(forwards), 1),
        "previous": round(statistics.median(backwards), 1),
        "previous_worst": round(max(backwards), 1),
        "theirs": None if their is None else round(their),
        "ratio": None if their is None else round(their / median, 1),
    }


def main() -> None:
    rows = [measured(text) for text in (*TYPICAL, *HOSTILE)]
    if "--json" in sys.argv:
        print(json.dumps(rows))
        return
    for row in rows:
        print(
            "{read:>7} {median:>7} {worst:>7} {previous:>7} {previous_worst:>7} {theirs!s:>8} {ratio!s:>9}  {rule}".format(
                **row
            )
        )
    print("   read  median   worst    prev   worst   theirs     ratio  (µs)")


if __name__ == "__main__":
    main()
