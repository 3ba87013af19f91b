"""Outcomes of an attempt: enumeration values with stable strings, never exceptions."""

from enum import StrEnum


class Blame(StrEnum):
    """Party responsible for an outcome, for retries, alerts and billing."""

    TENANT = "tenant"
    ENGINE = "engine"
    NEITHER = "nobody"


class Outcome(StrEnum):
    """How an attempt ended."""

    OK = "ok"
    SCRIPT_ERROR = "script_error"
    CPU_LIMIT = "cpu_limit"
    WALL_LIMIT = "wall_limit"
    MEMORY_LIMIT = "memory_limit"
    STACK_LIMIT = "stack_limit"
    OUTPUT_LIMIT = "output_limit"
    CALL_LIMIT = "call_limit"
    SOURCE_TOO_LARGE = "source_too_large"
    COMPILE_ERROR = "compile_error"
    BAD_REQUEST = "bad_request"
    DENIED = "denied"
    EFFECT_REFUSED = "effect_refused"
    CONFLICT = "conflict"
    CANCELLED = "cancelled"
    CRASHED = "crashed"
    PROTOCOL_ERROR = "protocol_error"
    WORKER_LOST = "worker_lost"
    ENGINE_FAULT = "engine_fault"

    @property
    def blames(self) -> Blame:
        """Party responsible for this outcome; a fault of the engine never counts against the tenant."""
        if self in _ENGINE:
            return Blame.ENGINE
        return Blame.NEITHER if self in _NEITHER else Blame.TENANT


_ENGINE = frozenset({Outcome.WORKER_LOST, Outcome.ENGINE_FAULT})
_NEITHER = frozenset({Outcome.OK, Outcome.CANCELLED, Outcome.CONFLICT})

#: Outcomes that a worker may report: ok, and those that blame the tenant. Any other is a protocol error.
WORKER_MAY_REPORT = frozenset(
    {
        Outcome.OK,
        Outcome.SCRIPT_ERROR,
        Outcome.CPU_LIMIT,
        Outcome.MEMORY_LIMIT,
        Outcome.STACK_LIMIT,
        Outcome.OUTPUT_LIMIT,
        Outcome.CALL_LIMIT,
        Outcome.COMPILE_ERROR,
        Outcome.BAD_REQUEST,
    }
)
