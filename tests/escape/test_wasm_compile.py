"""Compilation of modules: its limits, errors for modules that are not commands, compiled code per tenant; and tables and segments.

What never ends and what calls itself for ever are attacks of the escape suite (I127 to I129, I132).
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import wasmtime
from tests.escape.commands import HELLO, LADDER_OF_IFS, MIB, Commands, command, functions, leb, no_leaks, wasm
from tests.escape.probing import Echo
from wasmtime import _bindings as ffi
from wasmtime import wat2wasm

from lodger.sandbox import Bundle, Job, Limits, Outcome
from lodger.sandbox.runtimes.command.wasm_engine import COMMANDS
from lodger.sandbox.wasm.code_cache import CodeCache

__all__ = ["no_leaks", "wasm"]


def assembled(
    inner: str, start: str = '(func (export "_start"))', memory: str = '(memory (export "memory") 1)'
) -> bytes:
    return bytes(wat2wasm(f"(module {inner} {memory} {start})"))


REFUSED = {
    "nothing": (b"", "not WebAssembly"),
    "bad magic": (b"\0asn\1\0\0\0", "not WebAssembly"),
    "text": (b"export default () => 1", "not WebAssembly"),
    "version 2": (b"\0asm\2\0\0\0", "version 1"),
    "component": (b"\0asm\x0d\0\1\0", "component"),
    "only a header": (HELLO[:8], "_start"),
    "truncated": (HELLO[:-20], "unexpected end"),
    "junk behind": (HELLO + b"\xff\xff", "malformed section"),
    "no start": (assembled("", start=""), "_start"),
    "start with a parameter": (assembled("", start='(func (export "_start") (param i32))'), "_start"),
    "start is a global": (assembled("", start='(global (export "_start") i32 (i32.const 0))'), "_start"),
    "no memory": (assembled("", memory=""), '"memory"'),
    "unknown imports": (assembled('(import "env" "a" (func)) (import "env" "b" (global i32))'), "env.a, env.b;"),
    "imported memory": (assembled('(import "env" "memory" (memory 1))', memory=""), "env.memory"),
    "unknown WASI call": (assembled('(import "wasi_snapshot_preview1" "fd_exec" (func))'), "fd_exec"),
    "older WASI": (assembled('(import "wasi_unstable" "fd_close" (func (param i32) (result i32)))'), "wasi_unstable.fd_close"),
    "another type": (assembled('(import "wasi_snapshot_preview1" "fd_close" (func (param i64)))'), "fd_close"),
    "invalid body": (bytes(bytearray(HELLO).replace(b"\x0b", b"\x0c")), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_command_is_told_in_words(wasm: Commands, name: str) -> None:
    module, word = REFUSED[name]
    report = wasm(module)
    assert report.outcome is Outcome.COMPILE_ERROR
    assert report.error is not None
    assert word in report.error.message
    assert "\n" not in report.error.message
    assert wasm(HELLO).outcome is Outcome.OK


PROPOSALS = {
    "threads": ("", '(memory (export "memory") 1 2 shared)'),
    "atomics": ("(func (drop (i32.atomic.load (i32.const 0))))", None),
    "wait": ("(func (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1))))", None),
    "memory64": ("", '(memory (export "memory") i64 1)'),
    "multi-memory": ("(memory 1)", None),
    "tail calls": ("(func $f return_call $f)", None),
    "exceptions": ("(tag $t) (func (throw $t))", None),
    "gc": ("(type (struct)) (func (drop (struct.new 0)))", None),
    "i31": ("(func (drop (ref.i31 (i32.const 1))))", None),
    "function references": ("(type $f (func)) (func (param (ref $f)) (call_ref $f (local.get 0)))", None),
    "relaxed simd": ("(func (drop (i8x16.relaxed_swizzle (v128.const i64x2 0 0) (v128.const i64x2 0 0))))", None),
    "stack switching": ("(type $f (func)) (type (cont $f))", None),
    "wide arithmetic": ("(func (result i64 i64) (i64.add128 (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))", None),
    "page sizes": ("", '(memory (export "memory") 1 (pagesize 1))'),
    "externref": ("(func (param externref))", None),
}  # fmt: skip


def test_proposals_that_are_off(wasm: Commands) -> None:
    for name, (inner, memory) in PROPOSALS.items():
        module = assembled(inner, memory=memory or '(memory (export "memory") 1)')
        report = wasm(module)
        assert report.outcome is Outcome.COMPILE_ERROR, name
        assert report.error is not None
        assert any(
            word in report.error.message
            for word in ("enabled", "disabled", "disallowed", "required", "without", "multiple")
        ), name


def test_with_the_proposals_on_the_same_modules_are_valid() -> None:
    config = wasmtime.Config()
    for name in COMMANDS.off:
        if name.startswith("wasm_") or name in ("gc_support", "shared_memory"):
            setter = getattr(ffi, f"wasmtime_config_{name}_set")
            setter(config.ptr(), True)
    engine = wasmtime.Engine(config)
    for name, (inner, memory) in PROPOSALS.items():
        try:
            wasmtime.Module.validate(engine, assembled(inner, memory=memory or '(memory (export "memory") 1)'))
        except wasmtime.WasmtimeError as refused:
            raise AssertionError(name) from refused


def test_what_toolchains_emit_is_on(wasm: Commands) -> None:
    for body in (
        "(drop (i8x16.splat (i32.const 1)))",
        "(memory.copy (i32.const 0) (i32.const 1) (i32.const 2))",
        "(drop (i32.trunc_sat_f32_s (f32.const nan)))",
        "(drop (i32.extend8_s (i32.const 200)))",
        "(block (result i32 i32) (i32.const 1) (i32.const 2)) drop drop",
        "(drop (ref.is_null (ref.null func)))",
    ):
        assert wasm(command(body)).outcome is Outcome.OK, body


# -- bombs --


LOCALS = functions(b"\1" + leb(50_000) + b"\x7f\x20\0\x1a\x0b", times=100_000)
BLOCKS = functions(b"\0" + b"\2\x40" * 1_000_000 + b"\x0b" * 1_000_001)


@pytest.mark.parametrize("bomb", [LOCALS, LADDER_OF_IFS], ids=["locals", "ifs"])
def test_a_compile_bomb_ends_at_its_cpu_limit(bomb: bytes) -> None:
    wasm = Commands(compile_limits=Limits(cpu_ms=300, memory_bytes=512 * MIB))
    try:
        report = wasm(bomb)
        assert report.outcome is Outcome.CPU_LIMIT
        assert report.usage.cpu_ms < 2000
        assert report.error is not None
        assert report.error.message.startswith("compilation of the module: ")
        assert wasm(bomb).outcome is Outcome.CPU_LIMIT
        assert wasm.pool.compiler.compiled == 1, "it is not tried again"
        assert wasm(HELLO).outcome is Outcome.OK
    finally:
        wasm.close()


def test_a_compile_bomb_ends_at_its_memory_limit() -> None:
    wasm = Commands(compile_limits=Limits(cpu_ms=30_000, wall_ms=60_000, memory_bytes=16 * MIB))
    try:
        report = wasm(BLOCKS)
        assert report.outcome is Outcome.MEMORY_LIMIT
        assert report.usage.memory_peak_bytes <= (16 + 40) * MIB
    finally:
        wasm.close()


def test_a_compilation_has_its_time() -> None:
    wasm = Commands(compile_limits=Limits(cpu_ms=30_000, wall_ms=200, memory_bytes=512 * MIB))
    try:
        assert wasm(LADDER_OF_IFS).outcome is Outcome.WALL_LIMIT
    finally:
        wasm.close()


def test_the_largest_module_is_taken(wasm: Commands) -> None:
    maximum = 8 * MIB
    module = HELLO + b"\0" + leb(maximum - len(HELLO) - 5) + b"\1x"
    module += bytes(maximum - len(module))
    assert len(module) == maximum
    assert wasm(module, "[7]").result == "[7]"
    assert wasm(module + b"\0").outcome is Outcome.SOURCE_TOO_LARGE


def test_one_tenants_bomb_delays_no_other() -> None:
    async def go(wasm: Commands) -> None:
        bomb = asyncio.create_task(wasm.pool.run(Job(Bundle({}, wasm=LADDER_OF_IFS), tenant="mallory"), Echo()))
        second = asyncio.create_task(wasm.pool.run(Job(Bundle({}, wasm=BLOCKS), tenant="mallory"), Echo()))
        good = await wasm.pool.run(Job(Bundle({}, "1", wasm=HELLO), tenant="acme"), Echo())
        assert good.result == "1"
        assert not bomb.done()
        assert not second.done()
        for task in (bomb, second):
            task.cancel()
        await asyncio.gather(bomb, second, return_exceptions=True)

    wasm = Commands()
    try:
        wasm.runner.run(go(wasm))
    finally:
        wasm.close()


def test_a_module_can_be_compiled_before_it_runs(wasm: Commands) -> None:
    compiled, before = wasm.pool.compile, wasm.pool.compiler.compiled
    assert wasm.runner.run(compiled(Job(Bundle({}, wasm=HELLO), tenant="before"))) is None
    refused = wasm.runner.run(compiled(Job(Bundle({}, wasm=b"\0asm"), tenant="before")))
    assert refused is not None
    assert refused.outcome is Outcome.COMPILE_ERROR
    assert wasm(HELLO, tenant="before").outcome is Outcome.OK
    assert wasm.pool.compiler.compiled == before + 2


# -- code per tenant --


def test_another_tenants_code_is_not_used(wasm: Commands) -> None:
    before = wasm.pool.compiler.compiled
    for tenant, compiled in (("one", 1), ("another", 2), ("one", 2), ("another", 2)):
        assert wasm(HELLO, tenant=tenant).outcome is Outcome.OK
        assert wasm.pool.compiler.compiled == before + compiled


def on_disk(folder: Path, key: bytes = b"k" * 32) -> Commands:
    return Commands(code_cache=CodeCache(key, folder=folder))


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def run_once(folder: Path, tenant: str = "acme", key: bytes = b"k" * 32) -> tuple[str | None, int]:
    wasm = on_disk(folder, key)
    try:
        return wasm(HELLO, "[1]", tenant=tenant).result, wasm.pool.compiler.compiled
    finally:
        wasm.close()


def test_code_on_disk_serves_the_next_engine_with_the_same_key(tmp_path: Path) -> None:
    assert run_once(tmp_path) == ("[1]", 1)
    (file,) = files(tmp_path)
    assert file.stat().st_mode & 0o077 == 0
    assert run_once(tmp_path) == ("[1]", 0)
    assert run_once(tmp_path, tenant="zeta") == ("[1]", 1)
    assert run_once(tmp_path, key=b"other" * 7) == ("[1]", 1)


def test_segments_do_not_escape_the_memorys_bound(wasm: Commands) -> None:
    passive = '(data $d "' + "x" * 60000 + '")'
    fill = "(loop $l (memory.init $d (i32.const 0) (i32.const 0) (i32.const 60000)) (br $l))"
    assert wasm(command(fill, extra=passive), cpu_ms=100).outcome is Outcome.CPU_LIMIT
    beyond = wasm(command("", extra='(data (i32.const 65530) "0123456789")'))
    assert beyond.outcome is Outcome.SCRIPT_ERROR
    assert beyond.error is not None
    assert "out of bounds memory access" in beyond.error.message


def test_a_command_that_gives_up_with_its_memory_full(wasm: Commands) -> None:
    greedy = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))"
    for end in ("unreachable", "(call $proc_exit (i32.const 134))"):
        report = wasm(command(greedy + end), memory_bytes=16 * MIB)
        assert report.outcome is Outcome.MEMORY_LIMIT
        assert report.error is not None
        assert "16 MiB" in report.error.message


@pytest.mark.parametrize(
    ("most", "module"),
    [
        (256, lambda pages: command("", memory=f'(memory (export "memory") {pages})')),
        (100_000, lambda elements: command("", extra=f"(table {elements} funcref)")),
        (4, lambda tables: command("", extra="(table 1 funcref)" * tables)),
    ],
    ids=["pages of 16 MiB", "elements of a table", "tables"],
)
def test_a_module_begins_with_at_most(wasm: Commands, most: int, module: Callable[[int], bytes]) -> None:
    outcomes = [wasm(module(most + more), memory_bytes=16 * MIB).outcome for more in (-1, 0, 1)]
    assert outcomes == [Outcome.OK, Outcome.OK, Outcome.MEMORY_LIMIT]


def test_a_table_that_grows(wasm: Commands) -> None:
    grow = "(call $say (i32.eq (i32.const -1) (table.grow $t (ref.null func) (i32.const {}))))"
    found = [wasm(command(grow.format(n), extra="(table $t 0 funcref)")).result for n in (99_999, 100_000, 100_001, -1)]
    assert found == ["0", "0", "1", "1"]
