"""Slots of drawn schedules beside those of an older revision of the recurrence engine.

    python bench/developer/older_engine.py [schedules] [first seed] [--exclusions] [--hostile] [--revision REVISION]

The older engine is read from git history into a temporary folder. Only schedules that it accepts count. Each is asked
for slots after and before two instants; a search of the present engine goes on from where it stopped. Prints how many
schedules were compared, refused by either engine or undecided (the search was given up), and each difference; ends
with 1 when there is one.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
from argparse import ArgumentParser
from collections import Counter
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from dateutil.rrule import rrule

sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.unit.recurrence import hostile_schedules as adversarial
from tests.unit.recurrence.test_rrule_dateutil import rule_kwargs

from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.rrule import from_dateutil
from lodger.engine.recurrence.rule import Kind, RuleSpec, ScheduleRules
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import OutOfSteps, SearchedTo

#: The last revision that proved what exclusions leave.
REVISION = "3067405"
_NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
#: Slots that are compared in each direction, and questions that the present engine is asked for one of them.
_SLOTS, _QUESTIONS = 4, 40


def load(revision: str, folder: Path) -> Any:  # noqa: ANN401 - a module of another revision
    """Return the older ``compile`` module, imported as a package of its own."""
    archive = subprocess.run(["git", "archive", revision, "engine"], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder / "older_lodger", filter="data")
    for path in folder.rglob("*.py"):
        path.write_text(path.read_text().replace("lodger.engine", "older_lodger.engine"))
    sys.path.insert(0, str(folder))
    return import_module("older_lodger.engine.recurrence.compile")


def draw(dice: Random, *, exclusions: bool, hostile: bool) -> ScheduleRules:
    """Return a drawn schedule, with or without exclusions."""
    if hostile:
        while bool((rules := adversarial.schedule(dice)).exclusions) != exclusions:
            pass
        return rules
    if exclusions:
        return adversarial.everyday(dice)
    shape, tz = dice.random(), dice.choice(adversarial.ZONES)
    if shape < 0.35:
        return ScheduleRules((RuleSpec(adversarial.cron(dice), Kind.CRON),), tz=tz)
    if shape < 0.55:
        return ScheduleRules((RuleSpec(adversarial.schyntax(dice), Kind.SCHYNTAX),), tz=tz)
    try:
        return ScheduleRules((from_dateutil(rrule(**rule_kwargs(dice))),), tz=tz)
    except (RuleInvalid, ValueError):
        return draw(dice, exclusions=exclusions, hostile=hostile)


def translated(rules: ScheduleRules, older: Any) -> Any:  # noqa: ANN401 - values of another revision
    """Return the same schedule in the types of the older engine."""
    types = sys.modules["older_lodger.engine.recurrence.rule"]

    def spec(each: RuleSpec) -> Any:  # noqa: ANN401 - values of another revision
        kind = None if each.kind is None else types.Kind(each.kind.value)
        return types.RuleSpec(each.text, kind, each.dtstart, each.tz)

    gap, fold = rules.dst.gap, rules.dst.fold
    dst = types.DstPolicy(
        None if gap is None else types.Gap(gap.value), None if fold is None else types.Fold(fold.value)
    )
    return types.ScheduleRules(tuple(map(spec, rules.rules)), tuple(map(spec, rules.exclusions)), tz=rules.tz, dst=dst)


def search(ask: Any, instant: datetime) -> datetime | SearchedTo | None:  # noqa: ANN401 - values of another revision
    """Ask on from where a search stopped, a bounded number of times."""
    found = ask(instant)
    for _ in range(_QUESTIONS):
        if not isinstance(found, SearchedTo):
            break
        found = ask(found.instant, inclusive=True)
    return found


def compare(rules: ScheduleRules, older: Any, dice: Random) -> str:  # noqa: ANN401 - values of another revision
    """Return ``compared``, ``undecided``, ``refused by …`` or a difference."""
    try:
        theirs = older.compile_schedule(translated(rules, older), now=_NOW)
    except ValueError as error:
        return f"refused by the older engine as {getattr(error, 'code', error)}"
    try:
        ours = compile_schedule(rules, now=_NOW)
    except RuleInvalid as error:
        return f"refused by the present engine alone as {error.code}"
    verdict = "compared"
    for begin in (_NOW, _NOW + timedelta(days=dice.randint(-20_000, 60_000), seconds=dice.randrange(86_400))):
        for name in ("next_after", "previous_before"):
            at = begin
            for _ in range(_SLOTS):
                expected, found = getattr(theirs, name)(at), search(getattr(ours, name), at)
                if isinstance(found, SearchedTo):
                    early = expected is not None and (expected < found.instant) == (name == "next_after")
                    if early and expected != found.instant:
                        return f"difference: {name}({at}) is {expected}, searched to {found.instant}"
                    verdict = "undecided"
                    break
                if found != expected:
                    return f"difference: {name}({at}) was {expected}, is {found}"
                if expected is None:
                    break
                at = expected
    return verdict


def main() -> int:
    """Draw, compare and print; return the exit code."""
    parser = ArgumentParser()
    parser.add_argument("schedules", type=int, nargs="?", default=1000)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--exclusions", action="store_true")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--revision", default=REVISION)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    begin, seed = process_time(), given.first
    with tempfile.TemporaryDirectory() as folder:
        older = load(given.revision, Path(folder))
        while counts["compared"] < given.schedules:
            dice = Random(seed)
            rules = draw(dice, exclusions=given.exclusions, hostile=given.hostile)
            try:
                verdict = compare(rules, older, dice)
            except OutOfSteps as out:
                verdict = f"difference: raised {out!r}"
            except RuleInvalid as error:
                verdict = f"difference: raised {error.code}"
            if verdict.startswith("difference"):
                print(f"seed {seed}: {verdict}", flush=True)
                verdict = "difference"
            counts[verdict] += 1
            seed += 1
    print(f"seeds {given.first} to {seed - 1}, {process_time() - begin:.0f} s of CPU")
    for verdict, count in sorted(counts.items()):
        print(f"{count:>7} {verdict}")
    return int(counts["difference"] > 0)


if __name__ == "__main__":
    sys.exit(main())
