"""Thousands of hostile schedules, drawn at random: how many steps one question about each takes, and what it costs.

    python bench/developer/adversarial.py [how many] [first seed] [--everyday]

Questions go forwards and backwards from instants near and far. Ends with 1 when one takes more than
``MAX_STEPS`` steps, or when an everyday schedule (``--everyday``) is refused or needs more than one question.
"""

import sys
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import thread_time_ns

from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.recurrence.search import MAX_STEPS, OutOfSteps, SearchedTo, Steps

sys.path.append(str(Path(__file__).resolve().parents[2]))
from tests.unit.recurrence.hostile_schedules import everyday, schedule

_NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)


def question_cost(rules: CompiledSchedule, dice: Random) -> tuple[int, float]:
    """Most steps of some questions to a schedule, and milliseconds of the dearest."""
    max_steps, dearest = 0, 0.0
    for days in (0, dice.randint(-700_000, 2_900_000)):
        for ask in (rules.next_from, rules.last_to):
            steps = Steps()
            begin = thread_time_ns()
            with suppress(OutOfSteps):
                ask(_NOW + timedelta(days=days, seconds=dice.randrange(86_400)), steps)
            dearest = max(dearest, (thread_time_ns() - begin) / 1e6)
            max_steps = max(max_steps, MAX_STEPS - steps.left)
    return max_steps, dearest


def main() -> int:
    """Draw, ask, print; return the exit code."""
    given = [each for each in sys.argv[1:] if not each.startswith("--")]
    many, first = (int(text) for text in (*given, *("20000", "0")[len(given) :]))
    usual = "--everyday" in sys.argv
    refused: Counter[str] = Counter()
    figures: list[tuple[int, float]] = []
    wrong = 0
    for seed in range(first, first + many):
        dice = Random(seed)
        rules = everyday(dice) if usual else schedule(dice)
        try:
            compiled = compile_schedule(rules, now=_NOW)
            if usual and isinstance(compiled.next_after(_NOW), SearchedTo):
                wrong += 1
                print(f"seed {seed}: one question is not enough")
        except RuleInvalid as error:
            refused[error.code] += 1
            continue
        figures.append(question_cost(compiled, dice))
    steps, costs = (sorted(each) for each in zip(*figures, strict=True))
    wrong += (sum(refused.values()) if usual else 0) + (steps[-1] > MAX_STEPS + 1)
    print(f"{many} drawn, refused: {dict(refused)}")
    for name, values in (("steps", steps), ("ms", costs)):
        median, p99 = values[len(values) // 2], values[len(values) * 99 // 100]
        print(f"{name}: median {median:.3g}, p99 {p99:.3g}, most {values[-1]:.3g}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
