"""Programs that need an exact amount of one limit: a script, and an equivalent module."""

import json
from dataclasses import dataclass

from tests.escape.commands import HELLO, command, data

PAGE = 65536


@dataclass(frozen=True)
class Row:
    """One limit, and programs that need exactly ``needs`` of it.

    Attributes:
        script, module: None if the runtime does not have the limit; ``why`` explains it.
        step: resolution of the limit.
    """

    name: str
    needs: int
    script: str | None
    module: bytes | None
    context: str = "{}"
    why: str = ""
    step: int = 1

    def program(self, runtime: str) -> str | bytes | None:
        """Return the program for a runtime."""
        return self.module if runtime == "wasm" else self.script


def script_of_size(size: int) -> str:
    """Return a script of so many bytes."""
    code = "return 1 //"
    return code + "x" * (size - len(code))


def call(size: int) -> str:
    # Frame of a call: number, length of the name, name, arguments as JSON.
    args = size - 5 - len("kv.get") - len('{"key":""}')
    return f"await kv.get('k'.repeat({args})); return 1"


def write_call(fd: int, count: int) -> str:
    """Return WebAssembly text that writes so many bytes to a descriptor."""
    return f"(call $out (i32.const {fd}) (i32.const 1024) (i32.const {count}))"


def lines(count: int, size: int) -> bytes:
    """Return a module that writes lines of a size in bytes, without the line end."""
    loop = f"""(loop $l {write_call(2, size + 1)}
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {count}))))"""
    return command(loop, locals_="(local $i i32)", extra=data(1024, "x" * size + "\\n"))


NO_CALLS = "a module has no host call"

ROWS = [
    Row("source_bytes", 1000, script_of_size(1000), None, why="a module has no source: wasm_bytes"),
    Row("wasm_bytes", len(HELLO), None, HELLO, why="a script has no module: source_bytes"),
    Row("input_bytes", 1000, "return 1", HELLO, json.dumps({"a": "x" * 991})),
    Row("result_bytes", 1000, "return 'x'.repeat(998)", HELLO, json.dumps("x" * 998)),
    Row(
        "json_depth",
        10,
        "let a = 1; for (let i = 0; i < 10; i++) a = [a]; return a",
        command(write_call(1, 20), extra=data(1024, "[" * 10 + "]" * 10)),
    ),
    Row("host_calls", 5, "for (let i = 0; i < 5; i++) await kv.get('k'); return 1", None, why=NO_CALLS),
    Row("frame_bytes", 5000, call(5000), None, why=NO_CALLS),
]


@dataclass(frozen=True)
class LogRow:
    """One limit of the log; ``whole`` holds the lines if nothing is cut or dropped."""

    name: str
    needs: int
    script: str
    module: bytes
    whole: tuple[str, ...]

    def program(self, runtime: str) -> str | bytes:
        """Return the program for a runtime."""
        return self.module if runtime == "wasm" else self.script


LOG = [
    LogRow("log_lines", 20, "for (let i = 0; i < 20; i++) console.log('x')", lines(20, 1), ("x",) * 20),
    LogRow("log_line_bytes", 100, "console.log('x'.repeat(100))", lines(1, 100), ("x" * 100,)),
    LogRow(
        "log_bytes",
        1000,
        "console.log('x'.repeat(500)); console.log('x'.repeat(500))",
        lines(2, 500),
        ("x" * 500, "x" * 500),
    ),
]

#: Programs that never end.
ENDLESS: dict[str, tuple[str, bytes]] = {
    "cpu_ms": ("for (;;);", command("(loop $l (br $l))")),
    "wall_ms": (
        "await new Promise((f) => setTimeout(f, 60000))",
        command(
            "(i32.store (i32.const 116) (i32.const 1)) (i64.store (i32.const 124) (i64.const -1))"
            "(drop (call $poll_oneoff (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 300)))"
        ),
    ),
}


def holding(runtime: str, pages: int) -> str | bytes:
    """Return a program that uses a number of pages of 64 KiB at once and returns the number."""
    if runtime != "wasm":
        return f"const a = []; for (let n = 0; n < {pages}; n++) a.push(new Uint8Array(65536).fill(1)); return a.length"
    # Page by page, as allocators do, so that it gives up with its memory full.
    return command(
        f"(loop $l (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))"
        f"(br_if $l (i32.lt_u (memory.size) (i32.const {pages}))))"
        f"(memory.fill (i32.const 1024) (i32.const 1) (i32.const {pages * PAGE - 1024})) (call $say (memory.size))"
    )
