"""Whether an attempt that failed is made again, and when."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from lodger.engine.core.errors import InputError
from lodger.engine.policy.defaults import number, whole
from lodger.sandbox.outcome import Blame, Outcome

#: The same source fails the same way: a second try only costs the tenant time.
HOPELESS = frozenset({Outcome.COMPILE_ERROR, Outcome.SOURCE_TOO_LARGE, Outcome.BAD_REQUEST})
MAX_ATTEMPTS = 100


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
        for name in ("attempts", "engine_attempts"):
            if not 1 <= getattr(self, name) <= MAX_ATTEMPTS:
                raise _refused(name, getattr(self, name), f"a whole number from 1 to {MAX_ATTEMPTS}")
        if not 0 <= self.conflict_attempts <= MAX_ATTEMPTS:
            raise _refused("conflict_attempts", self.conflict_attempts, f"a whole number from 0 to {MAX_ATTEMPTS}")
        for name, minimum in (("backoff_s", 0.0), ("backoff_factor", 1.0), ("backoff_max_s", 0.0)):
            if not minimum <= getattr(self, name) <= 86_400 * 30:
                raise _refused(name, getattr(self, name), f"a number from {minimum:g} to {86_400 * 30}")
        for outcome in self.outcomes:
            if outcome not in set(Outcome):
                raise _refused("outcomes", outcome, "names of outcomes")

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
    unknown = sorted(set(wish) - {field.name for field in fields(Retry)})
    if unknown:
        raise _refused(unknown[0], wish[unknown[0]], "one of the fields " + ", ".join(f.name for f in fields(Retry)))
    try:
        return Retry(**{**wish, "outcomes": tuple(wish.get("outcomes", ()))})
    except TypeError as error:
        raise _refused("policy", dict(wish), str(error)) from error


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


def _wait(retry: Retry, failures: int) -> float:
    if failures <= 0:
        return 0.0
    exponent = min(failures - 1, 64)
    return min(retry.backoff_max_s, retry.backoff_s * min(retry.backoff_factor**exponent, 1e9))


def _refused(name: str, value: object, rule: str) -> InputError:
    return InputError(
        "retry_invalid", f"retry: {name} cannot be {value!r}", why=f"it is {rule}", fix="see the policy table"
    )
