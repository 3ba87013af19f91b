"""WebAssembly commands for tests, assembled from text; a pool for them on a loop of its own."""

import asyncio
from typing import Any

from tests.escape.probing import Echo
from wasmtime import wat2wasm

from lodger.sandbox import Bundle, Job, Limits, Report
from lodger.sandbox.wasm_pool import WasmPool

MIB = 1 << 20
_I32 = "(param i32)"
_IMPORTS = {
    "fd_read": "(param i32 i32 i32 i32) (result i32)",
    "fd_write": "(param i32 i32 i32 i32) (result i32)",
    "proc_exit": "(param i32)",
    "random_get": "(param i32 i32) (result i32)",
    "clock_time_get": "(param i32 i64 i32) (result i32)",
    "clock_res_get": "(param i32 i32) (result i32)",
    "args_sizes_get": "(param i32 i32) (result i32)",
    "environ_sizes_get": "(param i32 i32) (result i32)",
    "fd_prestat_get": "(param i32 i32) (result i32)",
    "fd_fdstat_get": "(param i32 i32) (result i32)",
    "fd_seek": "(param i32 i64 i32 i32) (result i32)",
    "fd_close": "(param i32) (result i32)",
    "path_open": "(param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)",
    "sock_send": "(param i32 i32 i32 i32 i32) (result i32)",
    "poll_oneoff": "(param i32 i32 i32 i32) (result i32)",
    "proc_raise": "(param i32) (result i32)",
}
#: $out writes bytes to a stream, $say one number as JSON, $in reads all of the input to an address and gives its length.
_HELPERS = """
 (func $out (param $fd i32) (param $at i32) (param $n i32)
  (i32.store (i32.const 8) (local.get $at)) (i32.store (i32.const 12) (local.get $n))
  (drop (call $fd_write (local.get $fd) (i32.const 8) (i32.const 1) (i32.const 16))))
 (func $say (param $v i32) (local $at i32)
  (local.set $at (i32.const 63))
  (loop $next
   (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.rem_u (local.get $v) (i32.const 10))))
   (local.set $at (i32.sub (local.get $at) (i32.const 1)))
   (br_if $next (local.tee $v (i32.div_u (local.get $v) (i32.const 10)))))
  (call $out (i32.const 1) (i32.add (local.get $at) (i32.const 1)) (i32.sub (i32.const 63) (local.get $at))))
 (func $in (param $at i32) (result i32) (local $n i32) (local $more i32)
  (loop $next
   (i32.store (i32.const 8) (i32.add (local.get $at) (local.get $n))) (i32.store (i32.const 12) (i32.const 32768))
   (drop (call $fd_read (i32.const 0) (i32.const 8) (i32.const 1) (i32.const 16)))
   (local.set $more (i32.load (i32.const 16)))
   (local.set $n (i32.add (local.get $n) (local.get $more)))
   (br_if $next (local.get $more)))
  (local.get $n))
"""


def wat(body: str, *, memory: str = '(memory (export "memory") 1)', extra: str = "", locals_: str = "") -> str:
    """A command whose _start is ``body``; every import of _IMPORTS can be called by its name."""
    imports = "\n".join(
        f'(import "wasi_snapshot_preview1" "{name}" (func ${name} {kind}))' for name, kind in _IMPORTS.items()
    )
    return f'(module {imports} {memory} {_HELPERS} {extra} (func $start (export "_start") {locals_} {body}))'


def command(body: str, **other: str) -> bytes:
    return bytes(wat2wasm(wat(body, **other)))


def data(at: int, text: str) -> str:
    return f'(data (i32.const {at}) "{text}")'


HELLO = command(
    """(call $out (i32.const 2) (i32.const 1024) (i32.const 12))
       (call $out (i32.const 1) (i32.const 4096) (call $in (i32.const 4096)))""",
    extra=data(1024, "hello\\nworld\\n"),
)
LOOP = command("(loop $l (br $l))")


class Commands:
    """A pool on a loop of its own."""

    def __init__(self, **settings: Any) -> None:
        self.runner = asyncio.Runner()
        self.pool: WasmPool = WasmPool(**settings)
        self.runner.run(self.pool.start())

    def __call__(
        self,
        wasm: bytes,
        given: str = "{}",
        *,
        host: Echo | None = None,
        tenant: str = "acme",
        fuel: int = 0,
        now_us: int = 0,
        **limits: int,
    ) -> Report:
        job = Job(Bundle({}, given, wasm=wasm), Limits(**limits), fuel=fuel, now_us=now_us, tenant=tenant)
        return self.runner.run(self.pool.run(job, host or Echo()))

    def close(self) -> None:
        self.runner.run(self.pool.stop())
        self.runner.close()


def leb(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes((number & 127 | 128,)), number >> 7
    return out + bytes((number,))


def functions(*bodies: bytes, times: int = 1) -> bytes:
    def section(kind: int, content: bytes) -> bytes:
        return bytes((kind,)) + leb(len(content)) + content

    count = leb(len(bodies) * times)
    code = b"".join(leb(len(body)) + body for body in bodies) * times
    return (
        b"\0asm\1\0\0\0" + section(1, b"\1\x60\0\0") + section(3, count + bytes(len(bodies) * times))
        + section(5, b"\1\0\1") + section(7, b"\2\x06memory\2\0\x06_start\0\0") + section(10, count + code)
    )  # fmt: skip


#: Costs seconds of compilation.
LADDER_OF_IFS = functions(b"\1\1\x7f" + b"\x20\0\4\x40\x20\0\x41\1\x6a\x21\0\x0b" * 500_000 + b"\x0b")
