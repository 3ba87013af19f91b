"""Budgets: limits of an attempt, and limits that the operator sets a tenant (how many, how often, how much a day)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
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
        attempt: limit of an attempt, None where a limit of the process bounds it.
        day: default limit of a tenant's day, None for no limit.
        effect: counted when the run is committed, for only then it happens; everything else counts whatever becomes of the run.
        help: the counted thing.
        need: maximum that one call uses, of what counts whatever becomes of the run; ``lot``: how much an attempt takes of the day at once.
    """

    name: str
    attempt: int | None
    day: int | None
    effect: bool
    help: str
    need: int = 0
    lot: int = 0


BUDGETS: tuple[BudgetSpec, ...] = (
    BudgetSpec("calls", None, None, False, "host calls", need=1, lot=100),
    BudgetSpec("queries", 100, None, False, "database queries", need=2, lot=20),
    BudgetSpec("rows_read", 10_000, None, False, "rows read by the script", need=1000, lot=2000),
    BudgetSpec(
        "rows_written", 1000, None, True, "rows and keys inserted, changed or removed, and later runs cancelled"
    ),
    BudgetSpec("bytes_written", 8 * MIB, None, True, "characters in writing calls, including refused calls"),
    BudgetSpec("mails", 100, 1000, True, "recipients of mails"),
    BudgetSpec("events", 100, 10_000, True, "emitted events"),
    BudgetSpec("later_runs", 20, 10_000, True, "runs that scripts and their URLs request"),
    BudgetSpec("fetches", 20, 10_000, False, "HTTP requests, and calls of the platform's functions", need=1, lot=5),
    BudgetSpec(
        "fetch_bytes",
        64 * MIB,
        None,
        False,
        "decoded body bytes of requests and their responses",
        need=9 * MIB,
        lot=9 * MIB,
    ),
)
BY_NAME = {spec.name: spec for spec in BUDGETS}
NAMES = tuple(BY_NAME)
#: Those of an attempt that a tenant's or a schedule's limits may name.
OF_ATTEMPT = frozenset(spec.name for spec in BUDGETS if spec.attempt is not None)
#: The most that an operator may allow one attempt.
MAX = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Overdrawn:
    """A budget that a request would pass: the row of the table that says so.

    Attributes:
        per: ``attempt``, ``day`` or ``tenant``.
        used: before the request.
    """

    name: str
    per: str
    limit: int
    used: int
    asked: int

    def as_dict(self) -> dict[str, Any]:
        """Return the row as the details of the error show it."""
        return {"budget": self.name, "per": self.per, "limit": self.limit, "used": self.used, "asked": self.asked}

    @property
    def message(self) -> str:
        """Return the sentence that tells a script's author which budget would be passed."""
        what = STORAGE_HELP if self.name == STORAGE else BY_NAME[self.name].help
        rest = {
            "attempt": "do less in one run, and continue in the next",
            "day": "it starts again at the next UTC day",
            "tenant": "delete some data, or ask the operator for a higher limit",
        }[self.per]
        return f"budget {self.name} is {self.limit} per {self.per} ({what}); {self.used} used, {self.asked} more requested: {rest}"


STORAGE = "storage_bytes"
STORAGE_HELP = "bytes of documents, keyed values, results, errors, logs and messages"


def given(limits: Mapping[str, Any]) -> dict[str, int]:
    """Return the budgets of an attempt that some limits name.

    Raises:
        InputError: limit_out_of_range.
    """
    found: dict[str, int] = {}
    for name in sorted(OF_ATTEMPT & set(limits)):
        value = limits[name]
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX:
            raise InputError("limit_out_of_range", name=name, value=value, help=BY_NAME[name].help, maximum=MAX, minimum=0)  # fmt: skip
        found[name] = value
    return found


def lowered(allowed: Mapping[str, int], wished: Mapping[str, int]) -> dict[str, int]:
    """Return every budget of an attempt: the allowed value, or the wished one where that is lower."""
    made: dict[str, int] = {}
    for spec in BUDGETS:
        if spec.attempt is not None:
            limit = allowed.get(spec.name, spec.attempt)
            made[spec.name] = min(limit, wished.get(spec.name, limit))
    return made


def crossed(limit: int | None, before: int, after: int) -> bool:
    """Whether a use that raises the total from ``before`` reaches WARNED_PERCENT of the limit; never without a limit."""
    if limit is None or limit <= 0:
        return False
    mark = limit * WARNED_PERCENT
    return before * 100 < mark <= after * 100


def of_effects(effects: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count the mails among described effects, where nothing else is known of what an attempt used."""
    return {"mails": sum(len(effect["to"]) for effect in effects if effect.get("effect") == "mail")}


RUNS = "budget_runs"
CPU = "budget_cpu_s"


@dataclass(frozen=True, slots=True)
class AllowanceSpec:
    """One allowance: its unit is in its name. A day is a UTC day."""

    name: str
    minimum: int
    maximum: int
    help: str


ALLOWANCES: tuple[AllowanceSpec, ...] = (
    AllowanceSpec("concurrent_runs", 1, 100_000, "concurrent attempts"),
    AllowanceSpec("scripts", 0, 10_000_000, "maximum number of scripts"),
    AllowanceSpec("versions", 1, 10_000_000, "maximum number of versions of one script"),
    AllowanceSpec("schedules", 0, 10_000_000, "maximum number of schedules"),
    AllowanceSpec(
        "min_interval_s", 1, 86_400 * 366, "minimum interval between slots of a schedule, over all its rules"
    ),
    AllowanceSpec(
        "runs_per_day", 0, 1_000_000_000, "attempts a day; those that failed by a fault of Lodger do not count"
    ),
    AllowanceSpec("cpu_s_per_day", 0, 1_000_000_000, "CPU time a day, checked before each start"),
    *(AllowanceSpec(f"{spec.name}_per_day", 0, 1_000_000_000_000, f"{spec.help}, a day") for spec in BUDGETS),
    AllowanceSpec(STORAGE, 0, 1 << 50, f"{STORAGE_HELP}; the oldest history is deleted first"),
    AllowanceSpec("retention_days", 1, 36_500, "how long finished actions are kept"),
    AllowanceSpec("retention_runs", 1, 100_000_000, "number of finished actions kept for each schedule"),
)
ALLOWANCE_NAMES = frozenset(spec.name for spec in ALLOWANCES)


@dataclass(frozen=True, slots=True)
class Allowance:
    """Limits of one tenant: the operator's settings, replaced by the tenant's own limits.

    None in a daily budget means no limit.
    """

    concurrent_runs: int
    scripts: int
    versions: int
    schedules: int
    min_interval_s: int
    runs_per_day: int | None
    cpu_s_per_day: int | None
    mails_per_day: int | None
    retention_days: int
    retention_runs: int
    calls_per_day: int | None = None
    queries_per_day: int | None = None
    rows_read_per_day: int | None = None
    rows_written_per_day: int | None = None
    bytes_written_per_day: int | None = None
    events_per_day: int | None = None
    later_runs_per_day: int | None = None
    fetches_per_day: int | None = None
    fetch_bytes_per_day: int | None = None
    storage_bytes: int = 1 << 30

    @property
    def limits_starts(self) -> bool:
        """Whether a daily budget may keep actions from starting, see :func:`exhausted`."""
        return self.runs_per_day is not None or self.cpu_s_per_day is not None

    def of_day(self, name: str) -> int | None:
        """Return the daily limit of a budget by its name; None for no limit."""
        limit: int | None = getattr(self, f"{name}_per_day")
        return limit

    def instead(self, limits: Mapping[str, Any]) -> "Allowance":
        """Return this allowance with a tenant's own limits in place of the operator's; they may be higher or lower.

        Raises:
            InputError: limit_out_of_range.
        """
        return Allowance(**{field.name: limits.get(field.name, getattr(self, field.name)) for field in fields(self)})

    def __post_init__(self) -> None:
        for spec in ALLOWANCES:
            value = getattr(self, spec.name)
            if value is None and spec.name.endswith("_per_day"):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not spec.minimum <= value <= spec.maximum:
                raise InputError(
                    "limit_out_of_range",
                    name=spec.name,
                    value=value,
                    help=spec.help,
                    minimum=spec.minimum,
                    maximum=spec.maximum,
                )


@dataclass(frozen=True, slots=True)
class Used:
    """Usage of a tenant on one UTC day; running actions are included in ``runs``."""

    runs: int = 0
    cpu_us: int = 0


@lru_cache(maxsize=1024)
def limits_of_day(allowance: Allowance) -> tuple[tuple[str, int, int], ...]:
    """Return each counted amount of a day that is limited, with its limit, and how many counted units are one unit of the limit."""
    limits = (
        ("runs", allowance.runs_per_day, 1),
        ("cpu_us", allowance.cpu_s_per_day, 1_000_000),
        *((name, allowance.of_day(name), 1) for name in NAMES),
    )
    return tuple((name, limit, scale) for name, limit, scale in limits if limit is not None)


def exhausted(allowance: Allowance, used: Used) -> str | None:
    """Why nothing more of this tenant may start today, or None."""
    if allowance.runs_per_day is not None and used.runs >= allowance.runs_per_day:
        return RUNS
    if allowance.cpu_s_per_day is not None and used.cpu_us >= allowance.cpu_s_per_day * 1_000_000:
        return CPU
    return None
