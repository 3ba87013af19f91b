"""Next slot of cron, Schyntax, interval and one-off rules, beside cronsim in the same run.

    python bench/developer/languages.py [--json]

Each figure is microseconds per question: the median over many starting instants, ``worst`` the slowest
instant (each asked three times, the fastest counts: the rest is the machine). ``ratio`` is cronsim's median
over Lodger's. cronsim seeks by making a new iterator, so that is what is timed; reading and the first
question are timed apart.
"""

import json
import math
import statistics
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import perf_counter_ns
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import RuleSpec

RULES = [
    ("*/5 * * * *", None),
    ("0 9 * * 1-5", None),
    ("0 9 * * 1-5", "Europe/Berlin"),
    ("30 2 * * *", "America/New_York"),
    ("0 0 LW * *", None),
    ("0 0 29 2 *", None),
    ("0 0 * * 5#5", None),
    ("*/10 * * * * *", None),
    ("0 0 29 2 */7", None),
    ("0 0 31 2,4,6,9,11 *", None),
    ("DAYS=both 0 0 1 * FRI#2", None),
    ("min(*%5)", None),
    ("{hours(10) days(!sat..sun)} {hours(12) days(sat..sun)}", "Europe/Berlin"),
    ("dates(2/29) dow(mon)", None),
    ("dom(20..-20)", None),
    (" ".join("{dates(2/29) dow(mon) h(%d)}" % (n % 24) for n in range(64)), None),  # noqa: UP031 - braces
    ("every 90s", None),
    ("at 9999-12-31T00:00", "Europe/Berlin"),
]
QUESTIONS = 200


def _instants(count: int) -> list[datetime]:
    first = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)
    return [first + timedelta(days=137 * place % 9000, seconds=7919 * place) for place in range(count)]


def _timed(ask: Callable[[datetime], object], instants: list[datetime]) -> tuple[float, float]:
    taken = []
    for instant in instants:
        fastest = math.inf
        for _ in range(3):
            begun = perf_counter_ns()
            ask(instant)
            fastest = min(fastest, (perf_counter_ns() - begun) / 1000)
        taken.append(fastest)
    return statistics.median(taken), max(taken)


def _peer(text: str, tz: str | None) -> tuple[float | None, float | None]:
    zone = ZoneInfo(tz or "UTC")
    instants = [instant.astimezone(zone) for instant in _instants(QUESTIONS // 4)]
    try:
        next(CronSim(text, instants[0]))
        return _timed(lambda instant: next(CronSim(text, instant)), instants)
    except (CronSimError, StopIteration):
        return None, None


def measured() -> list[dict[str, Any]]:
    """Measure every rule once."""
    rows = []
    for text, tz in RULES:
        spec = RuleSpec(text, tz=tz)
        parse_rule(spec).next_after(datetime(2026, 1, 1, tzinfo=UTC))
        reading = [0.0] * 20
        for place in range(20):
            begun = perf_counter_ns()
            rule = parse_rule(spec)
            reading[place] = (perf_counter_ns() - begun) / 1000
        rule = parse_rule(spec)
        begun = perf_counter_ns()
        rule.next_after(datetime(2026, 1, 1, tzinfo=UTC))
        first = (perf_counter_ns() - begun) / 1000
        after, worst = _timed(rule.next_after, _instants(QUESTIONS))
        before, worst_before = _timed(rule.previous_before, _instants(QUESTIONS))
        peer, peer_worst = _peer(text, tz)
        rows.append(
            {
                "rule": text if len(text) < 48 else text[:45] + "...",
                "tz": tz or "UTC",
                "parse_us": round(statistics.median(reading), 1),
                "first_us": round(first, 1),
                "next_us": round(after, 1),
                "previous_us": round(before, 1),
                "worst_us": round(max(worst, worst_before), 1),
                "cronsim_us": peer and round(peer, 1),
                "cronsim_worst_us": peer_worst and round(peer_worst, 1),
                "ratio": peer and round(peer / after, 1),
            }
        )
    return rows


def main() -> None:
    rows = measured()
    if "--json" in sys.argv:
        print(json.dumps(rows, indent=1))
        return
    columns = [name for name in rows[0] if name not in ("rule", "tz")]
    print(f"{'rule':48} {'zone':17}" + "".join(f"{name:>17}" for name in columns))
    for row in rows:
        cells = "".join(f"{'-' if row[name] is None else row[name]:>17}" for name in columns)
        print(f"{row['rule']:48} {row['tz']:17}{cells}")


if __name__ == "__main__":
    main()
