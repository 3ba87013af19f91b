"""Chapter I, classes 130, 131 and 135: modules that are costly to compile, disabled parts of WebAssembly, machine code instead of a module."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from lodger.escape.arena import COMPILE_LIMITS
from lodger.escape.case import COMMANDS, Case, cases
from lodger.escape.evidence import MEMORY_SLACK_BYTES, Escaped, Trial, both, ends_as, survives
from lodger.escape.modules import assemble, command, commands_of, compile_module, functions, section
from lodger.sandbox.limits import MIB
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.runtimes.js.rejections import leb

#: CPU time of a stopped compilation, as a multiple of its limit.
MAX_CPU_RATIO = 2

_STORY = "A small module is slow to compile: it is compiled in a separate worker with its own limits."


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


def _body(code: bytes, *, declared: bytes = b"\0") -> bytes:
    """Return the body of a function with its declared locals."""
    return declared + code + b"\x0b"


_ONE_LOCAL = b"\1\1\x7f"


def _ifs(count: int) -> bytes:
    """Return a module of so many conditionals."""
    return functions(_body(b"\x20\0\4\x40\x20\0\x41\1\x6a\x21\0\x0b" * count, declared=_ONE_LOCAL))


def _sums(count: int) -> bytes:
    """Return a module of so many sums."""
    return functions(_body(b"\x20\0\x41\x07\x6a\x22\0\x20\0\x6c\x21\0" * count, declared=_ONE_LOCAL))


def _table_jumps(count: int) -> bytes:
    """Return a module of so many jumps by a table."""
    targets = b"\x0e" + leb(2000) + b"\0" * 2000 + b"\0"
    return functions(_body((b"\2\x40\x20\0" + targets + b"\x0b") * count, declared=_ONE_LOCAL))


def _nested(count: int) -> bytes:
    """Return a module of so many nested loops."""
    return functions(_body(b"\3\x40" * count + b"\x20\0\x0d\0" + b"\x0b" * count, declared=_ONE_LOCAL))


def _many(count: int) -> bytes:
    """Return a module of so many functions."""
    return functions(_body(b"\x20\0\x41\x07\x6a\x21\0" * 8, declared=_ONE_LOCAL), times=count)


def _loads(count: int) -> bytes:
    """Return a module of so many reads of memory."""
    return functions(_body(b"\x20\0\x28\2\0\x21\0" * count, declared=_ONE_LOCAL))


def _calls(count: int) -> bytes:
    """Return a module of so many calls."""
    return functions(_body(b"\x10\1" * count), b"\0\x0b")


def _floats(count: int) -> bytes:
    """Return a module of so many operations on floats."""
    return functions(_body(b"\x20\0\xb2\x91\xa8\x21\0" * count, declared=_ONE_LOCAL))


def _divisions(count: int) -> bytes:
    """Return a module of so many divisions."""
    return functions(_body(b"\x20\0\x41\x07\x6e\x21\0" * count, declared=_ONE_LOCAL))


def _locals(count: int) -> bytes:
    """Return a module with so many local variables."""
    declared = b"\1" + leb(count) + b"\x7f"
    return functions(
        _body(
            b"".join(b"\x20" + leb(i) + b"\x41\1\x6a\x21" + leb((i * 7) % count) for i in range(count)) * 16,
            declared=declared,
        )
    )


BOMBS: tuple[tuple[str, str, Callable[[], bytes]], ...] = (
    ("ifs", "half a million conditions after another", lambda: _ifs(500_000)),
    ("sums", "a function of six hundred thousand sums", lambda: _sums(600_000)),
    ("jump-tables", "three and a half thousand jump tables of two thousand ends", lambda: _table_jumps(3600)),
    ("loops", "two hundred thousand loops in one another", lambda: _nested(200_000)),
    ("functions", "a hundred thousand functions", lambda: _many(100_000)),
    ("loads", "a chain of a million loads", lambda: _loads(900_000)),
    ("calls", "a million calls in a row", lambda: _calls(1_500_000)),
    ("floats", "a million conversions", lambda: _floats(900_000)),
    ("divisions", "a million divisions that may trap", lambda: _divisions(900_000)),
    ("variables", "forty thousand variables, mixed", lambda: _locals(40_000)),
)

_MEMORY = '(memory (export "memory") 1)'


def _assembled(body: str, items: str = "", memory: str = _MEMORY) -> dict[str, Any]:
    """Return a module of this body, with other items."""
    return {"wasm": partial(assemble, f'(module {memory} {items} (func (export "_start") {body}))')}


@lru_cache(maxsize=1)
def _machine_code() -> bytes:
    """Return machine code that this host's compiler has made of a harmless command."""
    return compile_module(command("(call $say (i32.const 1))"))


#: Inputs that are not modules; a careless compiler would pass them to the loader of machine code.
BINARIES: tuple[tuple[str, str, Callable[[], bytes]], ...] = (
    ("machine-code", "machine code that our own compiler made", _machine_code),
    ("machine-code-more", "the same with bytes after its end", lambda: _machine_code() + bytes(64)),
)

CASES = [
    *cases(
        "I130",
        "compile_limits",
        BOMBS,
        lambda module: {"wasm": module},
        runtimes=COMMANDS,
        expect=(Outcome.CPU_LIMIT, Outcome.MEMORY_LIMIT, Outcome.CRASHED),
        seen=_compiled_in_time,
        story=_STORY,
        limits={"wasm_bytes": 8 * MIB, "wall_ms": 5000},
    ),
    Case(
        "I130-too-large",
        "wasm_bytes",
        "a module one byte too large",
        expect=(Outcome.SOURCE_TOO_LARGE,),
        seen=ends_as(Outcome.SOURCE_TOO_LARGE),
        story="A module that is too large is refused before it reaches a compiler.",
        limits={"wasm_bytes": 65_536},
        runtimes=COMMANDS,
        wasm=lambda: (
            (small := command("(call $say (i32.const 1))")) + section(0, b"\1x" + bytes(65_537 - len(small) - 6))
        ),
    ),
    *commands_of(__file__, assembled=_assembled),
    *cases(
        "I135",
        "checked_code",
        BINARIES,
        lambda binary: {"wasm": binary},
        runtimes=COMMANDS,
        expect=(Outcome.COMPILE_ERROR,),
        seen=both(survives, ends_as(Outcome.COMPILE_ERROR)),
        story="Machine code from a tenant is not accepted; modules are compiled here.",
    ),
]
