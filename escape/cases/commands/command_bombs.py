"""Chapter I, classes 130, 131 and 135: modules that are costly to compile, disabled parts of WebAssembly, machine code instead of a module."""

from functools import lru_cache, partial
from typing import Any

from lodger.escape.arena import COMPILE_LIMITS
from lodger.escape.evidence import MEMORY_SLACK_BYTES, Escaped, Trial
from lodger.escape.modules import assemble, command, commands_of, compile_module, functions, section
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.runtimes.js.rejections import leb

#: CPU time of a stopped compilation, as a multiple of its limit.
MAX_CPU_RATIO = 2


def _compiled_in_time(trial: Trial) -> str:
    """Check that the compiler was stopped within its limits of time and memory."""
    for report in trial.reports:
        if report.outcome is Outcome.OK:
            raise Escaped(f"it was compiled to its end, in {trial.took_ms:.0f} ms")
    max_bytes = COMPILE_LIMITS.memory_bytes + MEMORY_SLACK_BYTES
    for report in trial.reports:
        if report.usage.memory_peak_bytes > max_bytes:
            raise Escaped(f"{report.usage.memory_peak_bytes} bytes of memory in the compiler, at most {max_bytes}")
        # CPU time relative to the limit does not depend on the speed of the host.
        if report.usage.cpu_ms > MAX_CPU_RATIO * COMPILE_LIMITS.cpu_ms:
            raise Escaped(f"{report.usage.cpu_ms:.0f} ms of CPU time in the compiler, limit {COMPILE_LIMITS.cpu_ms} ms")
    return f"{trial.report.usage.cpu_ms:.0f} ms of the compiler's CPU time, {trial.took_ms:.0f} ms in all"


def _bomb(code: str, times: str = "1", middle: str = "", after: str = "", number: str = "1") -> dict[str, Any]:
    """Return a module whose functions repeat the instructions ``code``, then have ``middle``, then repeat ``after``."""

    def assembled() -> bytes:
        """Return the bytes of the module."""
        before, between, behind = map(bytes.fromhex, (code, middle, after))
        body = b"\1\1\x7f" + before * int(times) + between + behind * int(times) + b"\x0b"
        return functions(body, times=int(number))

    return {"wasm": assembled}


def _variables(count: str) -> dict[str, Any]:
    """Return a module with so many local variables, mixed."""

    def assembled() -> bytes:
        """Return the bytes of the module."""
        number = int(count)
        mixed = (b"\x20" + leb(i) + b"\x41\1\x6a\x21" + leb((i * 7) % number) for i in range(number))
        return functions(b"\1" + leb(number) + b"\x7f" + b"".join(mixed) * 16 + b"\x0b")

    return {"wasm": assembled}


def _large(size: str) -> dict[str, Any]:
    """Return a command with a section that makes it so many bytes long."""
    small = command("(call $say (i32.const 1))")
    return {"wasm": small + section(0, b"\1x" + bytes(int(size) - len(small) - 6))}


def _assembled(body: str, items: str = "", memory: str = '(memory (export "memory") 1)') -> dict[str, Any]:
    """Return a module of this body, with other items."""
    return {"wasm": partial(assemble, f'(module {memory} {items} (func (export "_start") {body}))')}


@lru_cache(maxsize=1)
def _compiled() -> bytes:
    """Return machine code that this host's compiler has made of a harmless command."""
    return compile_module(command("(call $say (i32.const 1))"))


def _machine_code(_text: str, more: str = "") -> dict[str, Any]:
    """Return machine code in place of a module."""
    return {"wasm": lambda: _compiled() + bytes.fromhex(more)}


CASES = [
    *commands_of(
        __file__,
        checks={"compiled_in_time": _compiled_in_time},
        assembled=_assembled,
        bomb=_bomb,
        variables=_variables,
        large=_large,
        machine_code=_machine_code,
    )
]
