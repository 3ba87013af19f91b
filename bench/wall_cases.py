"""Programs that pass one limit, for each runtime: what ``lodger bench walls`` measures."""

from collections.abc import Callable
from dataclasses import dataclass

from lodger.sandbox.job import Bundle, Report
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome

#: Whose memory may pass its limit by how much, by the kernel's figure.
MAX_MIB = {"quickjs": 40.0, "quickjs-native": 16.0, "wasm": 40.0}
RUNTIMES = tuple(MAX_MIB)

_CPU = Limits(cpu_ms=50, wall_ms=60_000)
_WALL = Limits(cpu_ms=30_000, wall_ms=50)
_MEMORY = Limits(cpu_ms=10_000, wall_ms=60_000, memory_bytes=32 * MIB)


def _cpu(report: Report, limits: Limits) -> float:
    return report.usage.cpu_ms - limits.cpu_ms


def _wall(report: Report, limits: Limits) -> float:
    return report.usage.wall_ms - limits.wall_ms


def _memory(report: Report, limits: Limits) -> float:
    return (report.usage.memory_peak_bytes - limits.memory_bytes) / MIB


@dataclass(frozen=True, slots=True)
class Case:
    """A program that passes one limit.

    Attributes:
        code: JavaScript, or WebAssembly in its text format.
        beyond: how far it got, in ``unit``, from its report.
    """

    name: str
    code: str
    limits: Limits
    outcome: Outcome
    unit: str
    beyond: Callable[[Report, Limits], float]


def _case(name: str, code: str, limits: Limits) -> Case:
    for of, outcome, unit, beyond in (
        (_CPU, Outcome.CPU_LIMIT, "ms", _cpu),
        (_WALL, Outcome.WALL_LIMIT, "ms", _wall),
        (_MEMORY, Outcome.MEMORY_LIMIT, "MiB", _memory),
    ):
        if limits is of:
            return Case(name, code, limits, outcome, unit, beyond)
    raise AssertionError


_SCRIPTS = (
    _case("a loop", "for (;;);", _CPU),
    _case("a built-in without interruption", "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })", _CPU),
    _case("an endless result", "return { toJSON() { for (;;); } }", _CPU),
    _case("an endless error", "throw { get stack() { for (;;); } }", _CPU),
    _case("a sleeper", "await new Promise((f) => setTimeout(f, 60000))", _WALL),
    _case("a loop against the clock", "for (;;);", _WALL),
    _case("endless objects", "const a = []; for (;;) a.push({})", _MEMORY),
)

_WASI = '(import "wasi_snapshot_preview1" '
_POLL = _WASI + '"poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))'
_RANDOM = _WASI + '"random_get" (func $random (param i32 i32) (result i32)))'


def _module(body: str, imports: str = "", more: str = "") -> str:
    return f'(module {imports} (memory (export "memory") 1) {more} (func (export "_start") {body}))'


_MODULES = (
    _case("a loop", _module("(loop $l (br $l))"), _CPU),
    _case("a start function", _module("", more="(func $s (loop $l (br $l))) (start $s)"), _CPU),
    _case("endless calls", _module("(loop $l (drop (call $random (i32.const 0) (i32.const 65536))) (br $l))", _RANDOM), _CPU),
    _case("endless filling", _module("(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br $l))"), _CPU),
    _case(
        "a sleeper",
        _module(
            "(i32.store (i32.const 116) (i32.const 1)) (i64.store (i32.const 124) (i64.const -1))"
            "(drop (call $poll (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 300)))",
            _POLL,
        ),
        _WALL,
    ),
    _case("a loop against the clock", _module("(loop $l (br $l))"), _WALL),
    _case(
        "endless pages",
        _module(
            "(loop $l (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))"
            "(memory.fill (i32.mul (i32.sub (memory.size) (i32.const 1)) (i32.const 65536)) (i32.const 7) (i32.const 65536))"
            "(br $l))"
        ),
        _MEMORY,
    ),
)  # fmt: skip


def cases(runtime: str) -> tuple[Case, ...]:
    """Return what is measured on a runtime."""
    return _MODULES if runtime == "wasm" else _SCRIPTS


def bundle(runtime: str, case: Case) -> Bundle:
    """Return a case as the sandbox runs it."""
    if runtime != "wasm":
        return Bundle({"main.js": case.code})
    from wasmtime import wat2wasm

    return Bundle({}, wasm=bytes(wat2wasm(case.code)))
