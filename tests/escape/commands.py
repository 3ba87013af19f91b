"""WebAssembly commands for tests, and a pool for them with its own event loop."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.escape.matrix.pools import WeakWasmPool
from tests.escape.probing import Echo
from tests.leaks import no_leaks

from lodger.escape.modules import command, data, functions, wat
from lodger.sandbox import Bundle, Job, Limits, Report
from lodger.sandbox.runtimes.js.rejections import leb
from lodger.sandbox.wasm.pool import WasmPool

MIB = 1 << 20
HELLO = command(
    """(call $out (i32.const 2) (i32.const 1024) (i32.const 12))
       (call $out (i32.const 1) (i32.const 4096) (call $in (i32.const 4096)))""",
    extra=data(1024, "hello\\nworld\\n"),
)
LOOP = command("(loop $l (br $l))")


class Commands:
    """A pool with its own event loop."""

    def __init__(self, *, weak: dict[str, str] | None = None, **settings: Any) -> None:
        self.runner = asyncio.Runner()
        self.pool = WasmPool(**settings) if weak is None else WeakWasmPool(weak, profile="trusted", **settings)
        self.runner.run(self.pool.start())

    def __call__(
        self,
        wasm: bytes,
        given: str = "{}",
        *,
        host: Echo | None = None,
        tenant: str = "acme",
        now_us: int = 0,
        **limits: int,
    ) -> Report:
        job = Job(Bundle({}, given, wasm=wasm), Limits(**limits), now_us=now_us, tenant=tenant)
        return self.runner.run(self.pool.run(job, host or Echo()))

    def close(self) -> None:
        self.runner.run(self.pool.stop())
        self.runner.close()


@pytest.fixture(scope="module")
def wasm() -> Iterator[Commands]:
    """A pool for all tests of a module, in which each run has its own process."""
    commands = Commands()
    yield commands
    commands.close()


#: A module that takes seconds to compile.
LADDER_OF_IFS = functions(b"\1\1\x7f" + b"\x20\0\4\x40\x20\0\x41\1\x6a\x21\0\x0b" * 500_000 + b"\x0b")

__all__ = [
    "HELLO",
    "LADDER_OF_IFS",
    "LOOP",
    "MIB",
    "Commands",
    "command",
    "data",
    "functions",
    "leb",
    "no_leaks",
    "wasm",
    "wat",
]
