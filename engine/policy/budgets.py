"""What is counted of runs: one table of budgets, for an attempt and for a tenant's UTC day. Pure.

Enforcement, error texts, documentation and what scripts see (``limits()``) are made from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lodger.engine.core.errors import InputError

MIB = 1024 * 1024
#: From which part of a budget on its holder is warned.
WARNED_PERCENT = 80


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    """One thing that is counted.

    Attributes:
        name: with ``_per_day`` behind it, the tenant's limit of a day.
        attempt: most of an attempt, None where a limit of the process bounds it.
        day: most of a tenant's day when nobody says, None for any number.
        effect: counted when the run is committed, for only then it happens; everything else counts whatever becomes of the run.
        help: what is counted.
        need: most that one call uses, of what counts whatever becomes of the run; ``lot``: how much an attempt takes of the day at once.
    """

    name: str
    attempt: int | None
    day: int | None
    effect: bool
    help: str
    need: int = 0
    lot: int = 0


BUDGETS: tuple[BudgetSpec, ...] = (
    BudgetSpec("calls", None, None, False, "calls to the host", need=1, lot=100),
    BudgetSpec("queries", 100, None, False, "questions put to the database", need=2, lot=20),
    BudgetSpec("rows_read", 10_000, None, False, "rows given to the script", need=1000, lot=2000),
    BudgetSpec("rows_written", 1000, None, True, "rows and keys inserted, changed or removed"),
    BudgetSpec("bytes_written", 8 * MIB, None, True, "letters of all writing calls, refused ones included"),
    BudgetSpec("mails", 100, 1000, True, "recipients of mails"),
    BudgetSpec("events", 100, 10_000, True, "events told to webhooks"),
    BudgetSpec("fetches", 20, 10_000, False, "requests", need=1, lot=5),
    BudgetSpec(
        "fetch_bytes",
        8 * MIB,
        None,
        False,
        "bytes of bodies that requests send and are answered, decoded",
        need=3 * MIB,
        lot=4 * MIB,
    ),
)
BY_NAME = {spec.name: spec for spec in BUDGETS}
NAMES = tuple(BY_NAME)
#: Those of an attempt that a tenant's or a schedule's limits may name.
OF_ATTEMPT = frozenset(spec.name for spec in BUDGETS if spec.attempt is not None)
#: The most that an operator may allow one attempt.
MOST = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Overdrawn:
    """A budget that what was asked would pass: the row of the table that says so.

    Attributes:
        per: ``attempt``, ``day`` or ``tenant``.
        used: before what was asked.
    """

    name: str
    per: str
    limit: int
    used: int
    asked: int

    def as_dict(self) -> dict[str, Any]:
        """Give the row as the error's details show it."""
        return {"budget": self.name, "per": self.per, "limit": self.limit, "used": self.used, "asked": self.asked}

    @property
    def message(self) -> str:
        """One sentence for the author of the script."""
        what = STORAGE_HELP if self.name == STORAGE else BY_NAME[self.name].help
        rest = {
            "attempt": "do less, and let the next run go on",
            "day": "the next UTC day begins anew",
            "tenant": "remove some of it, or ask the operator for more",
        }[self.per]
        return f"budget {self.name} is {self.limit} per {self.per} ({what}); {self.used} used and {self.asked} asked: {rest}"


STORAGE = "storage_bytes"
STORAGE_HELP = "bytes that documents, keyed values, results, errors, logs and messages take"


def given(limits: Mapping[str, Any]) -> dict[str, int]:
    """Give the budgets of an attempt that some limits name.

    Raises:
        InputError: limit_out_of_range.
    """
    found: dict[str, int] = {}
    for name in sorted(OF_ATTEMPT & set(limits)):
        value = limits[name]
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
            raise InputError(
                "limit_out_of_range", f"limit {name} cannot be {value!r}", why=f"{BY_NAME[name].help}: a whole number from 0 to {MOST}",
                fix=f"choose a value in that range; the default is {BY_NAME[name].attempt}",
            )  # fmt: skip
        found[name] = value
    return found


def lowered(allowed: Mapping[str, int], wished: Mapping[str, int]) -> dict[str, int]:
    """Give every budget of an attempt: what is allowed, or what is wished where that is less."""
    made: dict[str, int] = {}
    for spec in BUDGETS:
        if spec.attempt is not None:
            most = allowed.get(spec.name, spec.attempt)
            made[spec.name] = min(most, wished.get(spec.name, most))
    return made


def crossed(limit: int | None, before: int, after: int) -> bool:
    """Whether this use is the one after which a holder is to be warned."""
    if limit is None or limit <= 0:
        return False
    mark = limit * WARNED_PERCENT
    return before * 100 < mark <= after * 100


def of_effects(effects: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count mails of a described journal, for whoever counts nothing else."""
    return {"mails": sum(len(effect["to"]) for effect in effects if effect.get("effect") == "mail")}
