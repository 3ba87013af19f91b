"""Hundreds of thousands of random rules against python-dateutil and cronsim, and everyday schedules against a brute walk.

    python bench/developer/differential.py [rrules] [crons] [schedules] [first seed]

Prints how many were compared, how many were undecided (the oracle is too slow or refuses the rule), and every difference;
ends with 1 when there is one. An interrupt ends one oracle's share
and prints the figures so far. The generator and the declared disputes are those of the suite.
"""

import sys
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from random import Random
from time import process_time

from cronsim import CronSim, CronSimError

sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.unit.recurrence.brute import Brute
from tests.unit.recurrence.drawn_rrules import FIRST, LAST, rule_kwargs, slots_of
from tests.unit.recurrence.hostile_schedules import everyday

from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rrule import from_dateutil
from lodger.engine.recurrence.rule import RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import OutOfSteps

_SLOTS = 12
_FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def rrule_differs(seed: int) -> bool | None:
    """Compare one rule; None when dateutil cannot decide."""
    kwargs = rule_kwargs(Random(seed))
    answer = slots_of(kwargs, _SLOTS)
    if answer is None:
        return None
    theirs, slots, until = answer
    try:
        rule = parse_rule(from_dateutil(theirs))
    except RuleInvalid:
        return bool(slots)
    expected = [slot.replace(tzinfo=UTC) for slot in slots]
    end = LAST if until is None else until.replace(tzinfo=UTC) + timedelta(seconds=1)
    found: list[datetime] = []
    try:
        found.extend(islice(rule.between(FIRST, end), len(expected) + 2))
    except OutOfSteps as out:  # nothing more lies before there
        if len(found) < len(expected) and out.reached <= expected[len(found)]:
            return None
    if found != expected:
        return True
    back = [rule.previous_before(slot, inclusive=True) for slot in expected]
    return back != expected


def _term(dice: Random, low: int, high: int) -> str:
    first, last = sorted((dice.randint(low, high), dice.randint(low, high)))
    span = dice.choice(["*", f"{first}", f"{first}-{last}"])
    return f"{span}/{dice.randint(1, 9)}" if dice.random() < 0.3 and span != f"{first}" and first < last else span


def cron_differs(seed: int) -> bool | None:
    """Compare one cron expression; None when cronsim refuses it."""
    dice = Random(seed)
    fields = [
        ",".join(_term(dice, *span) for _ in range(dice.choice([1, 1, 2]))) if dice.random() < 0.6 else "*"
        for span in _FIELDS
    ]
    text = " ".join(fields)
    start = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=dice.randrange(10 * 365 * 86_400))
    try:
        expected = list(islice(CronSim(text, start), _SLOTS))
    except CronSimError:
        return None
    rule, slot, found = parse_rule(RuleSpec(text)), start, []
    while len(found) < len(expected) and isinstance(slot := rule.next_after(slot), datetime):
        found.append(slot)
    return found != expected


def schedule_differs(seed: int) -> bool | None:
    """Compare a schedule with exclusions with the list of all its slots that no window covers."""
    dice = Random(seed)
    rules = everyday(dice)
    begin = datetime(2026, 11, 21, tzinfo=UTC) + timedelta(days=dice.randrange(3000))
    end = begin + timedelta(days=dice.choice((3, 30, 120)))
    return list(compile_schedule(rules).between(begin, end)) != Brute(rules, begin, end).slots


def main() -> int:
    """Run all; return the exit code."""
    usual = ("200000", "200000", "20000", "0")
    rrules, crons, schedules, first = (int(given) for given in (*sys.argv[1:], *usual[len(sys.argv) - 1 :]))
    differing = 0
    runs = (
        ("dateutil", rrule_differs, rrules), ("cronsim", cron_differs, crons), ("brute walk", schedule_differs, schedules)
    )  # fmt: skip
    for name, compare, many in runs:
        begin, done, undecided = process_time(), 0, 0
        try:
            for seed in range(first, first + many):
                differs = compare(seed)
                done += 1
                undecided += differs is None
                if differs:
                    differing += 1
                    print(f"{name}: seed {seed} differs")
        except KeyboardInterrupt:
            print(f"{name}: ended early")
        print(
            f"{name}: {done - undecided} of {done} rules compared, {undecided} undecided, {process_time() - begin:.0f} s of CPU"
        )
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
