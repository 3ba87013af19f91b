"""The limits of one attempt, declared in one table that enforcement, error messages, documentation and tests read."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

from lodger.sandbox.errors import LimitInvalid
from lodger.sandbox.outcome import Outcome

KIB = 1024
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LimitSpec:
    """One limit; its name ends with its unit.

    Attributes:
        name: field of :class:`Limits`.
        default: value unless the operator, tenant or script sets another.
        maximum: greatest value that an operator may set.
        minimum: smallest value that still runs a trivial script.
        outcome: outcome of an attempt that exceeds it; ``ok`` if output is dropped instead.
        help: description for the reference.
    """

    name: str
    default: int
    minimum: int
    maximum: int
    outcome: Outcome
    help: str


def _limit(default: int, minimum: int, maximum: int, outcome: Outcome, words: str) -> Any:
    """Return a field of :class:`Limits`; the arguments are those of :class:`LimitSpec`."""
    spec = {"default": default, "minimum": minimum, "maximum": maximum, "outcome": outcome, "help": words}
    return field(default=default, metadata=spec)


@dataclass(frozen=True, slots=True)
class Limits:
    """Values of all limits for one attempt. Tenants and scripts may only lower the operator's values: :meth:`lowered`."""

    cpu_ms: int = _limit(1000, 10, 30_000, Outcome.CPU_LIMIT, "CPU time of the worker, user and system")
    wall_ms: int = _limit(
        35_000, 20, 300_000, Outcome.WALL_LIMIT, "time from the start of the worker's job to its answer"
    )
    memory_bytes: int = _limit(64 * MIB, 8 * MIB, 1024 * MIB, Outcome.MEMORY_LIMIT, "memory the script can hold")
    source_bytes: int = _limit(256 * KIB, 1, 4 * MIB, Outcome.SOURCE_TOO_LARGE, "all modules of the script, UTF-8")
    wasm_bytes: int = _limit(8 * MIB, 8, 64 * MIB, Outcome.SOURCE_TOO_LARGE, "a WebAssembly module")
    input_bytes: int = _limit(256 * KIB, 2, 4 * MIB, Outcome.BAD_REQUEST, "the input JSON")
    result_bytes: int = _limit(256 * KIB, 4, 4 * MIB, Outcome.OUTPUT_LIMIT, "the result JSON")
    log_bytes: int = _limit(256 * KIB, 0, 4 * MIB, Outcome.OK, "all log lines; the rest is cut and marked")
    log_lines: int = _limit(1000, 0, 100_000, Outcome.OK, "number of log lines; further ones are dropped and marked")
    log_line_bytes: int = _limit(8 * KIB, 16, 64 * KIB, Outcome.OK, "one log line; the rest is cut and marked")
    host_calls: int = _limit(200, 0, 100_000, Outcome.CALL_LIMIT, "calls that leave the worker")
    frame_bytes: int = _limit(
        MIB, 4 * KIB, 8 * MIB, Outcome.OUTPUT_LIMIT, "the arguments of one host call, or its answer"
    )
    # Clients nest results once more, and common JSON parsers stop at a depth of 255.
    json_depth: int = _limit(
        64, 4, 200, Outcome.BAD_REQUEST, "nesting of any JSON value passed into or out of the sandbox"
    )

    def __post_init__(self) -> None:
        for spec in LIMITS:
            value = getattr(self, spec.name)
            if not isinstance(value, int) or isinstance(value, bool) or not spec.minimum <= value <= spec.maximum:
                raise LimitInvalid(
                    "limit_out_of_range",
                    f"the limit {spec.name} cannot be {value!r}",
                    why=f"{spec.help}; it must be an integer from {spec.minimum} to {spec.maximum}",
                    fix=f"choose a value in that range; the default is {spec.default}",
                )

    def lowered(self, wishes: dict[str, Any]) -> "Limits":
        """Return these limits with each lower value of ``wishes``; higher values are ignored."""
        unknown = sorted(set(wishes) - {each.name for each in fields(self)})
        if unknown:
            raise LimitInvalid(
                "limit_unknown",
                f"there is no limit {unknown[0]!r}",
                fix="use one of: " + ", ".join(spec.name for spec in LIMITS),
            )
        asked = Limits(**wishes)
        # Other limits keep the operator's value, which may exceed the default.
        return replace(self, **{name: min(getattr(self, name), getattr(asked, name)) for name in wishes})


LIMITS = tuple(LimitSpec(each.name, **each.metadata) for each in fields(Limits))
