"""Verdicts: how an attempt ended, decided from the parent's clock, the exit status and the kernel's usage figures. Pure."""

import os
import signal
from dataclasses import dataclass, replace

from lodger.sandbox.job import CallHandlerGone, ScriptError
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome
from lodger.stdlib.calls import EFFECTS_PER_CALL

#: Tick of the kernel's CPU clock at HZ=100, the coarsest in use.
_TICK_MS = 10
_ENDED_BY_MEMORY = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP})


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome with its error."""

    outcome: Outcome
    error: ScriptError | None = None


def _limit(outcome: Outcome, message: str) -> Verdict:
    """Return the verdict of a limit that was exceeded."""
    return Verdict(outcome, ScriptError("LimitExceeded", message))


def cpu_limit(limits: Limits, last_call: str = "") -> Verdict:
    """Return the verdict on an exceeded CPU time."""
    return _limit(Outcome.CPU_LIMIT, f"the script used more than {limits.cpu_ms} ms of CPU time{_after(last_call)}")


def wall_limit(limits: Limits, last_call: str = "") -> Verdict:
    """Return the verdict on an exceeded wall time."""
    return _limit(Outcome.WALL_LIMIT, f"the script did not finish within {limits.wall_ms} ms{_after(last_call)}")


def _after(last_call: str) -> str:
    """Return words on where a script was when it was stopped from outside: after which host call."""
    return f"; its last call was {last_call}" if last_call else ""


def memory_limit(limits: Limits) -> Verdict:
    """Return the verdict on exceeded memory."""
    return _limit(Outcome.MEMORY_LIMIT, f"the script needed more than {limits.memory_bytes // MIB} MiB of memory")


def call_limit(limits: Limits, *, uncounted: bool = False) -> Verdict:
    """Return the verdict on too many host calls, or on too many effects and calls that only compute."""
    if not uncounted:
        return _limit(Outcome.CALL_LIMIT, f"the script made more than {limits.host_calls} host calls")
    number = limits.host_calls * EFFECTS_PER_CALL
    message = f"the script made more than {number} effects and calls that only compute, such as those of Intl"
    return _limit(Outcome.CALL_LIMIT, f"{message}: {EFFECTS_PER_CALL} for each of its {limits.host_calls} host calls")


def uncaught_call_limit(found: Verdict, limits: Limits) -> Verdict:
    """Return a script's error as the limit of calls that it has met and not caught, if it is that."""
    met = call_limit(limits, uncounted=True).error
    if found.error is None or met is None or found.error.message != met.message:
        return found
    return Verdict(Outcome.CALL_LIMIT, replace(found.error, name=met.name))


def output_limit(limits: Limits, size: int) -> Verdict:
    """Return the verdict on a result that is too large."""
    return _limit(Outcome.OUTPUT_LIMIT, f"the result has {size} bytes of JSON, the maximum is {limits.result_bytes}")


def cancelled() -> Verdict:
    """Return the verdict on a cancelled attempt."""
    return Verdict(Outcome.CANCELLED, ScriptError("Cancelled", "the run was cancelled"))


def bad_request(why: str) -> Verdict:
    """Return the verdict on an input or result outside the bounds; ``why`` must not quote the script."""
    return Verdict(Outcome.BAD_REQUEST, ScriptError("BadRequest", why))


def compile_error(why: str) -> Verdict:
    """Return the verdict on a script that cannot be loaded; ``why`` must not quote the script."""
    return Verdict(Outcome.COMPILE_ERROR, ScriptError("ReferenceError", why))


def source_too_large(size: int, limits: Limits) -> Verdict:
    """Return the verdict on modules that are too large."""
    message = f"the modules have {size} bytes, the maximum is {limits.source_bytes}"
    return Verdict(Outcome.SOURCE_TOO_LARGE, ScriptError("LimitExceeded", message))


def module_too_large(size: int, limits: Limits) -> Verdict:
    """Return the verdict on a WebAssembly module that is too large."""
    message = f"the module has {size} bytes, the maximum is {limits.wasm_bytes}"
    return Verdict(Outcome.SOURCE_TOO_LARGE, ScriptError("LimitExceeded", message))


def bad_result(why: str) -> Verdict:
    """Return the verdict on a WebAssembly module with output that is not JSON; ``why`` must not quote the output."""
    return Verdict(Outcome.SCRIPT_ERROR, ScriptError("BadResult", f"standard output must be one JSON value: {why}"))


def protocol_error(why: str) -> Verdict:
    """Return the verdict on a protocol error of the worker; ``why`` must not quote its bytes."""
    return Verdict(Outcome.PROTOCOL_ERROR, ScriptError("ProtocolError", f"the worker violated the protocol: {why}"))


def worker_lost(why: str) -> Verdict:
    """Return the verdict on a worker lost through no fault of the script."""
    return Verdict(Outcome.WORKER_LOST, ScriptError("WorkerLost", why))


def engine_fault(why: str) -> Verdict:
    """Return the verdict on a failure of the engine; ``why`` is a fixed sentence, never an exception's text."""
    return Verdict(Outcome.ENGINE_FAULT, ScriptError("EngineFault", why))


def is_bug(error: Exception) -> bool:
    """Return whether an exception of the host is logged with a traceback: not if a service is unavailable."""
    return not isinstance(error, CallHandlerGone)


def of_host(error: Exception) -> Verdict:
    """Return the verdict on an attempt after an exception of the host."""
    if isinstance(error, CallHandlerGone):
        return engine_fault("a service behind this script's calls could not be reached")
    return engine_fault("the engine failed to handle a host call")


def of_death(status: int, cpu_ms: float, peak_bytes: int, limits: Limits, last_call: str = "") -> Verdict:
    """Return the verdict on a worker that ended without an answer and was not stopped by the parent.

    Args:
        status: exit status from wait4.
        cpu_ms: CPU time of the job, without warm-up.
        peak_bytes: resident memory above that of an idle worker.
        limits: the job's limits.
        last_call: name of the last host call; "" if there was none.
    """
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return Verdict(Outcome.CRASHED, ScriptError("Crash", f"the worker ended without an answer (exit code {code})"))
    number = -code
    # The guest's memory is protected at the limit, and the host may have entered it meanwhile: SIGSEGV.
    spent = cpu_ms + _TICK_MS >= limits.cpu_ms and number in (signal.SIGKILL, signal.SIGSEGV)
    if spent or number in (signal.SIGXCPU, signal.SIGPROF):  # the second is sent to runtimes that handle it
        return cpu_limit(limits, last_call)
    if number == signal.SIGKILL:
        if peak_bytes >= limits.memory_bytes:
            return memory_limit(limits)
        return worker_lost("the worker was killed from outside")
    if number == signal.SIGSYS:
        return Verdict(Outcome.CRASHED, ScriptError("Crash", "denied system call: seccomp killed the worker (SIGSYS)"))
    if number in _ENDED_BY_MEMORY and peak_bytes * 10 >= limits.memory_bytes * 9:
        return memory_limit(limits)
    return Verdict(Outcome.CRASHED, ScriptError("Crash", f"the worker crashed ({_name(number)})"))


def _name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
