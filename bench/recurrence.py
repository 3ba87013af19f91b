"""Next slot of RRULE sets, typical and hostile, beside python-dateutil in the same run.

    python bench/recurrence.py [--json]

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
from random import Random
from time import perf_counter
from typing import Any

from dateutil.rrule import rrulestr

from lodger.engine.recurrence import rrule

NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
GIVE_UP_S = 0.5

TYPICAL = [
    "DTSTART:20260101T090000\nRRULE:FREQ=DAILY",
    "DTSTART;TZID=Europe/Berlin:20200101T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    "DTSTART;TZID=America/New_York:20200101T090000\nRRULE:FREQ=MONTHLY;BYDAY=-1FR",
    "DTSTART:20160101T000000\nRRULE:FREQ=HOURLY",
    "DTSTART:20160101T000000\nRRULE:FREQ=MINUTELY;INTERVAL=5",
    "DTSTART:20250101T000000\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "DTSTART:20250101T000000\nRRULE:FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
    "DTSTART:20200101T090000\nRRULE:FREQ=DAILY;COUNT=5000",
]
HOSTILE = [
    "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=SECONDLY;BYYEARDAY=366",
    "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR=3;BYMINUTE=4;BYSECOND=5",
    "FREQ=MINUTELY;BYMONTH=12;BYMONTHDAY=31;BYHOUR=23;BYMINUTE=59",
    "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3;BYMINUTE=4;BYSECOND=5",
    "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3;BYMINUTE=4;BYSECOND=5;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=3;BYMINUTE=7;BYDAY=MO;BYMONTHDAY=13",
    "FREQ=MINUTELY;INTERVAL=1441;BYHOUR=3,5,7;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=SECONDLY;INTERVAL=1000003;BYHOUR=1,2,3",
    "FREQ=SECONDLY;INTERVAL=100003;BYHOUR=1,2,3,4,5,6,7;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU",
    "FREQ=SECONDLY;INTERVAL=999999937;BYMONTH=1",
    "FREQ=HOURLY;INTERVAL=3904;BYMONTHDAY=-12,14;BYDAY=WE,TH;BYWEEKNO=34",
    "FREQ=DAILY;INTERVAL=365;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=DAILY;INTERVAL=1461;BYMONTH=3;BYMONTHDAY=1;BYDAY=MO",
    "FREQ=DAILY;INTERVAL=773;BYMONTHDAY=13;BYDAY=FR",
    "FREQ=DAILY;INTERVAL=7;BYDAY=TU",
    "FREQ=WEEKLY;INTERVAL=773;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=WEEKLY;INTERVAL=1000;BYMONTHDAY=31;BYDAY=FR",
    "FREQ=MONTHLY;INTERVAL=11;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    "FREQ=MONTHLY;INTERVAL=13;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=YEARLY;INTERVAL=399;BYYEARDAY=366;BYDAY=SU",
    "FREQ=YEARLY;BYDAY=MO;BYSETPOS=54",
    "FREQ=YEARLY;BYWEEKNO=53;BYDAY=SU;BYMONTH=1;BYMONTHDAY=3",
    "FREQ=YEARLY;BYHOUR="
    + ",".join(map(str, range(24)))
    + ";BYMINUTE="
    + ",".join(map(str, range(60)))
    + ";BYSECOND="
    + ",".join(map(str, range(60)))
    + ";BYMONTHDAY="
    + ",".join(map(str, range(1, 32)))
    + ";BYSETPOS="
    + ",".join(str(n) for n in range(-366, 367) if n),
    "FREQ=WEEKLY;BYDAY=MO,TU,WE;BYHOUR=" + ",".join(map(str, range(24))) + ";BYSETPOS=-72,71",
    "DTSTART:19000101T000000\nRRULE:FREQ=SECONDLY;INTERVAL=7;COUNT=999999999",
    "DTSTART:19260101T000000\nRRULE:FREQ=HOURLY;COUNT=1000000",
    "DTSTART:00010101T000000\nRRULE:FREQ=MINUTELY;INTERVAL=77;BYHOUR=1,5,9;COUNT=999999999",
    "DTSTART:19260101T000000\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=1,-1;COUNT=100000",
    "DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY",
    "DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY;BYHOUR=1,2",
    "DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY;INTERVAL=2\nEXRULE:FREQ=MINUTELY;BYSECOND=1,3,5,7,9",
    "DTSTART:20260101T090000\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,3\nEXRULE:FREQ=MONTHLY;BYMONTHDAY=1,3",
    "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3",
    "FREQ=SECONDLY;INTERVAL=604801;BYDAY=TU",
    "FREQ=SECONDLY;INTERVAL=31556951;BYMONTH=3",
    "FREQ=DAILY;INTERVAL=365;BYMONTH=3",
    "FREQ=DAILY;INTERVAL=2555;BYDAY=TU",
    "DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY;BYMONTH=1,2,3,4,5,6,7,8,9,10,11",
]


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
