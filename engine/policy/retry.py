"""Whether an attempt that failed is made again, and when."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from lodger.engine.core.errors import InputError
from lodger.engine.policy.conduct import hash_fraction
from lodger.engine.policy.defaults import BY_NAME, number, whole
from lodger.sandbox.outcome import Blame, Outcome

#: The same source fails the same way: a second try only costs the tenant time.
HOPELESS = frozenset({Outcome.COMPILE_ERROR, Outcome.SOURCE_TOO_LARGE, Outcome.BAD_REQUEST})
#: Keys whose values are numbers.
NUMBERS = ("attempts", "engine_attempts", "conflict_attempts", "backoff_s", "backoff_factor", "backoff_max_s")
#: Names that other schedulers use for our keys.
SYNONYMS = {
    "tries": "attempts", "max_attempts": "attempts", "max_tries": "attempts", "retries": "attempts", "limit": "attempts",
    "delay": "backoff_s", "backoff": "backoff_s", "delay_s": "backoff_s", "factor": "backoff_factor", "max_delay": "backoff_max_s",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """Number of an action's failures, the present one included, by the party to blame."""

    tenant: int = 0
    engine: int = 0
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry policy. ``attempts`` counts every try, the first included.

    Attributes:
        outcomes: which of the tenant's outcomes are worth another try; empty means all that can end differently.
    """

    attempts: int = whole("attempts")
    engine_attempts: int = whole("engine_attempts")
    conflict_attempts: int = whole("conflict_attempts")
    backoff_s: float = number("backoff_s")
    backoff_factor: float = number("backoff_factor")
    backoff_max_s: float = number("backoff_max_s")
    outcomes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in NUMBERS:
            BY_NAME[name].require("retry_invalid", getattr(self, name))
        for outcome in self.outcomes:
            if outcome not in set(Outcome):
                near = next(iter(difflib.get_close_matches(str(outcome), list(Outcome), 1)), None)
                raise InputError("retry_invalid.outcome", outcome=outcome, outcomes=Outcome, near=near)

    def as_dict(self) -> dict[str, Any]:
        """Return the policy as a JSON object."""
        return asdict(self) | {"outcomes": list(self.outcomes)}


def parse_retry(wish: "Retry | Mapping[str, Any] | int | None") -> Retry:
    """Read a policy: a Retry, an object with its fields, a number of attempts, or None for the defaults.

    Raises:
        InputError: retry_invalid.
    """
    if wish is None:
        return Retry()
    if isinstance(wish, Retry):
        return wish
    if isinstance(wish, int):
        return Retry(attempts=wish)
    names = [field.name for field in fields(Retry)]
    for key in wish:
        if key not in names:
            near = SYNONYMS.get(str(key)) or next(iter(difflib.get_close_matches(str(key), names, 1)), None)
            raise InputError(
                "retry_invalid.key",
                key=key,
                keys=(f"{name} ({BY_NAME[name].range})" if name in NUMBERS else name for name in names),
                near=near,
            )
    outcomes = wish.get("outcomes", ())
    if isinstance(outcomes, str) or not isinstance(outcomes, Sequence):
        raise InputError("retry_invalid", name="outcomes", value=outcomes, rule="a list of names of outcomes")
    return Retry(**{**wish, "outcomes": tuple(outcomes)})


def retry_wait_s(retry: Retry, outcome: Outcome, tries: FailureCounts) -> float | None:
    """Return how many seconds to wait before the next try, or None when the action has failed for good.

    Args:
        outcome: how the present attempt failed; ``ok`` and ``cancelled`` are never tried again.
        tries: failures so far, the present one included.
    """
    if outcome is Outcome.CONFLICT:
        return 0.0 if tries.conflicts <= retry.conflict_attempts else None
    if outcome.blames is Blame.ENGINE:
        # What was ours costs the tenant no back-off on the first return.
        return _wait(retry, tries.engine - 1) if tries.engine < retry.engine_attempts else None
    if outcome.blames is not Blame.TENANT or tries.tenant >= retry.attempts:
        return None
    if retry.outcomes:
        return _wait(retry, tries.tenant) if outcome in retry.outcomes else None
    return None if outcome in HOPELESS else _wait(retry, tries.tenant)


def spread_wait_s(wait_s: float, seed: str) -> float:
    """Return a wait with a delay of up to a fifth after it, so that an outage's retries do not come back together.

    Args:
        seed: the action and its attempt: the same ones wait equally long on every machine.
    """
    return wait_s * (1 + hash_fraction(seed) / (5 << 32))


def _wait(retry: Retry, failures: int) -> float:
    """Return the seconds until the next try after so many failures."""
    if failures <= 0:
        return 0.0
    exponent = min(failures - 1, 64)
    return min(retry.backoff_max_s, retry.backoff_s * min(retry.backoff_factor**exponent, 1e9))
