"""Rules of the simulated schedules: their form for the engine, and their oracle."""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from tests.sim.simulator.oracle import Oracle, Regular, Several, Wall

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, RuleSpec, ScheduleRules
from lodger.engine.service.nouns.base import specs

SECOND = 1_000_000

#: A rule of a plan: JSON. ``kind`` is every, cron, wall, union; ``from_s`` (of every) and ``end_s`` are seconds after the world's
#: beginning, or absent.
Rule = Mapping[str, Any]

#: Wall-clock rules: cron text and the seconds of the day that it names.
WALLS: dict[str, tuple[int, ...]] = {
    "* * * * *": tuple(range(0, 86_400, 60)),
    "*/15 * * * *": tuple(range(0, 86_400, 900)),
    "30 1-3 * * *": (5400, 9000, 12_600),
    "0,30 2 * * *": (7200, 9000),
}


def arguments_for(rule: Rule, start_us: int) -> dict[str, Any]:
    """Return the arguments of ``schedules.create`` and ``edit``."""
    end_s = rule.get("end_s")
    asked: dict[str, Any] = {
        "tz": rule.get("zone"),
        "dst": DstPolicy(),
        "exclusions": (),
        "end": None if end_s is None else from_us(start_us + round(end_s * SECOND)),
    }
    match rule["kind"]:
        case "every":
            first = rule.get("from_s")
            dtstart = None if first is None else from_us(start_us + round(first * SECOND)).isoformat()
            asked["rules"] = RuleSpec(f"every {rule['s']}s", dtstart=dtstart)
        case "cron":
            asked["rules"] = f"*/{rule['s']} * * * * *"
        case "wall":
            asked["rules"] = rule["text"]
            asked["dst"] = DstPolicy(Gap(rule["gap"]), Fold.BOTH if rule["both"] else Fold.FIRST)
        case "union":
            asked["rules"] = [f"every {each}s" for each in rule["s"]]
            asked["exclusions"] = [f"every {each}s" for each in rule["without"]]
    return asked


def stored(rule: Rule, start_us: int) -> ScheduleRules:
    """Return the rules as stored in the ledger."""
    asked = arguments_for(rule, start_us)
    return ScheduleRules(
        specs(asked["rules"]), specs(asked["exclusions"]), asked["tz"], asked["dst"], None, asked["end"]
    )


def starts_of(stored: str) -> tuple[str, tuple[int, ...]]:
    """Return stored rules as they were given, and the instants that their intervals count from, in microseconds, exclusions last."""
    read = json.loads(stored)
    specs = [*read["rules"], *read["exclusions"]]
    counted = [spec.pop("counted_from", None) for spec in specs]
    starts = tuple(0 if each is None else to_us(datetime.fromisoformat(each)) for each in counted)
    return json.dumps(read, sort_keys=True), starts


def oracle(rule: Rule, start_us: int, starts: tuple[int, ...]) -> Oracle:
    """Return the oracle of the rule's slots; intervals without a start of their own count from ``starts``."""
    made: Oracle
    match rule["kind"]:
        case "every":
            made = Regular(
                rule["s"] * SECOND,
                starts[0] if rule.get("from_s") is None else start_us + round(rule["from_s"] * SECOND),
            )
        case "cron":
            made = Regular(rule["s"] * SECOND, 0)
        case "wall":
            made = _wall(rule["zone"], rule["text"], rule["gap"], rule["both"])
        case _:
            every = [*rule["s"], *rule["without"]]
            all_of = [Regular(each * SECOND, start) for each, start in zip(every, starts, strict=True)]
            made = Several(tuple(all_of[: len(rule["s"])]), tuple(all_of[len(rule["s"]) :]))
    end_s = rule.get("end_s")
    return made if end_s is None else Several((made,), end=start_us + round(end_s * SECOND))


@lru_cache(maxsize=256)
def _wall(zone: str, text: str, gap: str, both: bool) -> Wall:
    return Wall(ZoneInfo(zone), WALLS[text], gap, both)
