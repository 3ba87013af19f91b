"""The limits of one process, from one declaration: enforcement, error text, documentation and tests read this table."""

from dataclasses import dataclass, fields, replace
from typing import Any

from lodger.sandbox.errors import LimitInvalid
from lodger.sandbox.outcome import Outcome

KIB = 1024
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LimitSpec:
    """One limit: its unit is in its name.

    Attributes:
        name: field of :class:`Limits`.
        default: what an attempt gets when nobody lowers it.
        maximum: the most an operator may allow.
        minimum: the least that still runs a trivial script.
        outcome: how an attempt ends that passes it; ``ok`` when it goes on with less.
        help: what it bounds.
    """

    name: str
    default: int
    minimum: int
    maximum: int
    outcome: Outcome
    help: str


LIMITS: tuple[LimitSpec, ...] = (
    LimitSpec("cpu_ms", 1000, 10, 30_000, Outcome.CPU_LIMIT, "CPU time of the worker, user and system"),
    LimitSpec("wall_ms", 10_000, 20, 300_000, Outcome.WALL_LIMIT, "time from hand-over to answer"),
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
        "all log lines; what is over is cut and marked",
    ),
    LimitSpec(
        "log_lines",
        1000,
        0,
        100_000,
        Outcome.OK,
        "number of log lines; what is over is dropped and marked",
    ),
    LimitSpec(
        "log_line_bytes",
        8 * KIB,
        16,
        64 * KIB,
        Outcome.OK,
        "one log line; what is over is cut and marked",
    ),
    LimitSpec("host_calls", 200, 0, 100_000, Outcome.CALL_LIMIT, "calls that leave the worker"),
    LimitSpec(
        "frame_bytes", MIB, 4 * KIB, 8 * MIB, Outcome.OUTPUT_LIMIT, "the arguments of one host call, or its answer"
    ),
    # What shows results nests them once more, and none of it goes deeper than 255: one row would keep a whole list from being shown.
    LimitSpec("json_depth", 64, 4, 200, Outcome.BAD_REQUEST, "nesting of any JSON value that crosses the wall"),
)

_BY_NAME = {spec.name: spec for spec in LIMITS}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one attempt. Tenant and script may only lower what the operator allows: :meth:`lowered`."""

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
                    f"limit {spec.name} cannot be {value!r}",
                    why=f"{spec.help}: a whole number from {spec.minimum} to {spec.maximum}",
                    fix=f"choose a value in that range; the default is {spec.default}",
                )

    def lowered(self, wishes: dict[str, Any]) -> "Limits":
        """Give these limits with every wish that is lower; a higher wish changes nothing."""
        unknown = sorted(set(wishes) - {field.name for field in fields(self)})
        if unknown:
            raise LimitInvalid(
                "limit_unknown",
                f"there is no limit {unknown[0]!r}",
                fix="one of: " + ", ".join(spec.name for spec in LIMITS),
            )
        asked = Limits(**wishes)
        # What is not wished for stays as allowed, which may be more than the default.
        return replace(self, **{name: min(getattr(self, name), getattr(asked, name)) for name in wishes})
