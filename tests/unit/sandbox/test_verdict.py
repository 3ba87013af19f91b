"""Verdicts on a worker that ended without an answer."""

import signal

import pytest

from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Blame, Outcome
from lodger.sandbox.workers import codec
from lodger.sandbox.workers.verdict import cpu_limit, of_death

LIMITS = Limits(cpu_ms=100, memory_bytes=32 * MIB)


@pytest.mark.parametrize(
    ("status", "cpu_ms", "peak", "outcome"),
    [
        (0, 1, 0, Outcome.CRASHED),
        (72 << 8, 1, 0, Outcome.CRASHED),
        (signal.SIGKILL, 99, 0, Outcome.CPU_LIMIT),
        (signal.SIGKILL, 152, 0, Outcome.CPU_LIMIT),
        (signal.SIGXCPU, 1, 0, Outcome.CPU_LIMIT),
        (signal.SIGPROF, 1, 0, Outcome.CPU_LIMIT),
        (signal.SIGKILL, 10, 40 * MIB, Outcome.MEMORY_LIMIT),
        (signal.SIGKILL, 10, 1 * MIB, Outcome.WORKER_LOST),
        (signal.SIGSYS, 1, 0, Outcome.CRASHED),
        (signal.SIGSEGV, 152, 0, Outcome.CPU_LIMIT),
        (signal.SIGSEGV, 1, 0, Outcome.CRASHED),
        (signal.SIGSEGV, 1, 30 * MIB, Outcome.MEMORY_LIMIT),
        (signal.SIGABRT | 0x80, 1, 30 * MIB, Outcome.MEMORY_LIMIT),
        (signal.SIGTERM, 1, 30 * MIB, Outcome.CRASHED),
        (40, 1, 0, Outcome.CRASHED),  # a real-time signal
    ],
)
def test_of_death(status: int, cpu_ms: float, peak: int, outcome: Outcome) -> None:
    found = of_death(status, cpu_ms, peak, LIMITS)
    assert found.outcome is outcome
    assert found.error is not None
    assert found.error.message


def test_only_deaths_from_outside_are_not_the_tenants() -> None:
    assert of_death(signal.SIGKILL, 1, 0, LIMITS).outcome.blames is Blame.ENGINE
    assert of_death(signal.SIGSYS, 1, 0, LIMITS).outcome.blames is Blame.TENANT


def test_crash_names_its_signal() -> None:
    error = of_death(signal.SIGBUS, 1, 0, LIMITS).error
    assert error is not None
    assert "SIGBUS" in error.message


def test_the_kernels_cpu_limit_names_the_last_call_as_the_parents_does() -> None:
    """The kernel stops a worker whose parent gets its turn late."""
    found = of_death(signal.SIGXCPU, 1000, 0, LIMITS, "kv.get")
    assert found == cpu_limit(LIMITS, "kv.get")
    assert found.error is not None
    assert found.error.message.endswith("; its last call was kv.get")


def test_texts_of_an_error_can_be_stored() -> None:
    error = rb'{"name":"\ud800","message":"m\udfff","stack":"","details":{"\ud83d":["\udc00", {"a":"\ud83d\ude00"}]}}'
    found = codec.failure(b"\x0cscript_error" + error).error
    assert found is not None
    assert (found.name, found.message, found.details) == ("?", "m?", {"?": ["?", {"a": "\U0001f600"}]})
