"""What the operator allows a tenant beside the limits of a process: how many, how often, how much a day."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from lodger.engine.core.errors import InputError
from lodger.engine.policy.budgets import BUDGETS, STORAGE, STORAGE_HELP

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
    AllowanceSpec("concurrent_runs", 1, 100_000, "attempts at once"),
    AllowanceSpec("scripts", 0, 10_000_000, "scripts that exist at once"),
    AllowanceSpec("versions", 1, 10_000_000, "versions of one script"),
    AllowanceSpec("schedules", 0, 10_000_000, "schedules that exist at once"),
    AllowanceSpec("min_interval_s", 1, 86_400 * 366, "least distance of two slots of a schedule, over all its rules"),
    AllowanceSpec("runs_per_day", 0, 1_000_000_000, "attempts a day; those that failed by our fault are not counted"),
    AllowanceSpec("cpu_s_per_day", 0, 1_000_000_000, "CPU time a day, looked at before each start"),
    *(AllowanceSpec(f"{spec.name}_per_day", 0, 1_000_000_000_000, f"{spec.help}, a day") for spec in BUDGETS),
    AllowanceSpec(STORAGE, 0, 1 << 50, f"{STORAGE_HELP}; the oldest history goes first"),
    AllowanceSpec("retention_days", 1, 36_500, "how long actions that are over are kept"),
    AllowanceSpec("retention_runs", 1, 100_000_000, "how many actions that are over are kept of each schedule"),
)
_BY_NAME = {spec.name: spec for spec in ALLOWANCES}
NAMES = frozenset(_BY_NAME)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one tenant is allowed: the operator's settings, with what the tenant's own limits say instead.

    None in a daily budget means that nobody counts.
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
    fetches_per_day: int | None = None
    fetch_bytes_per_day: int | None = None
    storage_bytes: int = 1 << 30

    def of_day(self, name: str) -> int | None:
        """Give the most of a budget (:mod:`lodger.engine.policy.budgets`) in a day, None for any number."""
        most: int | None = getattr(self, f"{name}_per_day")
        return most

    def instead(self, limits: Mapping[str, Any]) -> "Allowance":
        """Give this allowance with a tenant's own values, which may be higher or lower: the operator gave both.

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
                    f"limit {spec.name} cannot be {value!r}",
                    why=f"{spec.help}: a whole number from {spec.minimum} to {spec.maximum}",
                    fix="choose a value in that range",
                )


@dataclass(frozen=True, slots=True)
class Used:
    """What a tenant has used on one UTC day, what runs now included in ``runs``."""

    runs: int = 0
    cpu_us: int = 0


def exhausted(allowance: Allowance, used: Used) -> str | None:
    """Why nothing more of this tenant may start today, or None."""
    if allowance.runs_per_day is not None and used.runs >= allowance.runs_per_day:
        return RUNS
    if allowance.cpu_s_per_day is not None and used.cpu_us >= allowance.cpu_s_per_day * 1_000_000:
        return CPU
    return None


def runs_left(allowance: Allowance, used: Used) -> int | None:
    """How many more may start today; None when nobody counts."""
    return None if allowance.runs_per_day is None else max(0, allowance.runs_per_day - used.runs)
