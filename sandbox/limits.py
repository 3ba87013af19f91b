"""The limits of one attempt, declared in one table that enforcement, error messages, documentation and tests read."""

from dataclasses import dataclass, fields, replace
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


LIMITS: tuple[LimitSpec, ...] = (
    LimitSpec("cpu_ms", 1000, 10, 30_000, Outcome.CPU_LIMIT, "CPU time of the worker, user and system"),
    LimitSpec(
        "wall_ms", 35_000, 20, 300_000, Outcome.WALL_LIMIT, "time from the start of the worker's job to its answer"
    ),
    LimitSpec("memory_bytes", 64 * MIB, 8 * MIB, 1024 * MIB, Outcome.MEMORY_LIMIT, "memory the script can hold"),
    LimitSpec("source_bytes", 256 * KIB, 1, 4 * MIB, Outcome.SOURCE_TOO_LARGE, "all modules of the script, UTF-8"),
    LimitSpec("wasm_bytes", 8 * MIB, 8, 64 * MIB, Outcome.SOURCE_TOO_LARGE, "a WebAssembly module"),
    LimitSpec("input_bytes", 256 * KIB, 2, 4 * MIB, Outcome.BAD_REQUEST, "the input JSON"),
    LimitSpec("result_bytes", 256 * KIB, 4, 4 * MIB, Outcome.OUTPUT_LIMIT, "the result JSON"),
    LimitSpec(
        "log_bytes",
        256 * KIB,
        0,
        4 * MIB,
        Outcome.OK,
        "all log lines; the rest is cut and marked",
    ),
    LimitSpec(
        "log_lines",
        1000,
        0,
        100_000,
        Outcome.OK,
        "number of log lines; further ones are dropped and marked",
    ),
    LimitSpec(
        "log_line_bytes",
        8 * KIB,
        16,
        64 * KIB,
        Outcome.OK,
        "one log line; the rest is cut and marked",
    ),
    LimitSpec("host_calls", 200, 0, 100_000, Outcome.CALL_LIMIT, "calls that leave the worker"),
    LimitSpec(
        "frame_bytes", MIB, 4 * KIB, 8 * MIB, Outcome.OUTPUT_LIMIT, "the arguments of one host call, or its answer"
    ),
    # Clients nest results once more, and common JSON parsers stop at a depth of 255.
    LimitSpec(
        "json_depth", 64, 4, 200, Outcome.BAD_REQUEST, "nesting of any JSON value passed into or out of the sandbox"
    ),
)

_BY_NAME = {spec.name: spec for spec in LIMITS}


@dataclass(frozen=True, slots=True)
class Limits:
    """Values of all limits for one attempt. Tenants and scripts may only lower the operator's values: :meth:`lowered`."""

    cpu_ms: int = _BY_NAME["cpu_ms"].default
    wall_ms: int = _BY_NAME["wall_ms"].default
    memory_bytes: int = _BY_NAME["memory_bytes"].default
    source_bytes: int = _BY_NAME["source_bytes"].default
    wasm_bytes: int = _BY_NAME["wasm_bytes"].default
    input_bytes: int = _BY_NAME["input_bytes"].default
    result_bytes: int = _BY_NAME["result_bytes"].default
    log_bytes: int = _BY_NAME["log_bytes"].default
    log_lines: int = _BY_NAME["log_lines"].default
    log_line_bytes: int = _BY_NAME["log_line_bytes"].default
    host_calls: int = _BY_NAME["host_calls"].default
    frame_bytes: int = _BY_NAME["frame_bytes"].default
    json_depth: int = _BY_NAME["json_depth"].default

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
        unknown = sorted(set(wishes) - {field.name for field in fields(self)})
        if unknown:
            raise LimitInvalid(
                "limit_unknown",
                f"there is no limit {unknown[0]!r}",
                fix="use one of: " + ", ".join(spec.name for spec in LIMITS),
            )
        asked = Limits(**wishes)
        # Other limits keep the operator's value, which may exceed the default.
        return replace(self, **{name: min(getattr(self, name), getattr(asked, name)) for name in wishes})
