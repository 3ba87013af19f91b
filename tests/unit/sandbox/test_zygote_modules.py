"""Modules of the zygote: each further one makes every fork slower, and some register hooks that run in every fork."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from lodger.sandbox import Pool
from lodger.sandbox.wasm.pool import WasmPool

OURS = {
    "lodger", "lodger.sandbox", "lodger.sandbox.child", "lodger.sandbox.child.boot", "lodger.sandbox.child.channel",
    "lodger.sandbox.child.settings", "lodger.sandbox.child.worker", "lodger.sandbox.frames", "lodger.sandbox.walls",
    "lodger.sandbox.walls.bpf", "lodger.sandbox.walls.cpu_timer", "lodger.sandbox.walls.identity",
    "lodger.sandbox.walls.landlock", "lodger.sandbox.walls.libc", "lodger.sandbox.walls.namespaces",
    "lodger.sandbox.walls.process", "lodger.sandbox.walls.rlimits", "lodger.sandbox.walls.seccomp",
    "lodger.sandbox.walls.syscalls",
}  # fmt: skip
QUICKJS = {
    "lodger.sandbox.runtimes", "lodger.sandbox.runtimes.answer", "lodger.sandbox.runtimes.js",
    "lodger.sandbox.runtimes.js.guest", "lodger.sandbox.runtimes.libwasmtime", "lodger.sandbox.runtimes.js.machine",
    "lodger.sandbox.runtimes.js.image", "lodger.sandbox.runtimes.js.modules", "lodger.sandbox.runtimes.js.overrun",
    "lodger.sandbox.runtimes.quickjs", "lodger.sandbox.runtimes.timeline", "lodger.sandbox.runtimes.js.realm",
    "lodger.sandbox.runtimes.warm_up", "lodger.sandbox.runtimes.written",
}  # fmt: skip
WASM = {
    "lodger.sandbox.runtimes", "lodger.sandbox.runtimes.answer", "lodger.sandbox.runtimes.libwasmtime",
    "lodger.sandbox.runtimes.command", "lodger.sandbox.runtimes.command.wasm_engine",
    "lodger.sandbox.runtimes.command.machine", "lodger.sandbox.runtimes.command.realm",
    "lodger.sandbox.runtimes.command.wasi", "lodger.sandbox.runtimes.timeline", "lodger.sandbox.runtimes.wasm",
}  # fmt: skip
OS = {"os", "os.path", "posixpath", "genericpath", "stat", "_stat", "_collections_abc"}
THEIRS = OS | {
    "_blake2",  # randomness of a replay
    "_sha1",  # digests of scripts
    "_sha2",
    "_sha256",
    "_sha512",
    "binascii",
    "_ctypes",
    "_socket",
    "_struct",
    "ctypes",
    "ctypes._endian",
    "errno",
    "gc",
    "resource",
    "select",
    "struct",
    "time",
    "types",
}
# modules that call os.register_at_fork
HOOKED = {"threading", "random", "logging", "concurrent.futures.thread", "asyncio"}


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def processes(pool: Pool | WasmPool) -> tuple[int, int]:
    assert pool.zygote is not None
    launcher = pool.zygote.launcher_pid
    return launcher, int(Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()[0])


async def look(pool: Pool | WasmPool) -> tuple[set[str], int, int]:
    await pool.start()
    try:
        launcher, zygote = processes(pool)
        assert pool.zygote is not None
        return set(pool.zygote.modules), threads(zygote), threads(launcher)
    finally:
        await pool.stop()


def interpreter_itself() -> set[str]:
    import subprocess
    import sys

    command = [sys.executable, "-I", "-S", "-E", "-c", "import sys; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


NATIVE = QUICKJS | {"_quickjs"} | {
    f"lodger.sandbox.runtimes.{name}"
    for name in ("native", "native.guest", "native.modules", "native.realm", "native.rejections", "quickjs_native")
}  # fmt: skip


@pytest.mark.parametrize(
    ("make", "more"),
    [(Pool, QUICKJS), (WasmPool, WASM), (partial(Pool, runtime="quickjs-native"), NATIVE)],
    ids=["quickjs", "wasm", "quickjs-native"],
)
def test_a_zygote_has_one_thread_and_the_modules_that_it_needs(
    make: Callable[..., Pool | WasmPool], more: set[str]
) -> None:
    modules, count, launcher_count = asyncio.run(look(make(size=1)))
    assert modules - interpreter_itself() <= OURS | THEIRS | more
    assert not modules & {*HOOKED, "quickjs"}
    assert (count, launcher_count) == (1, 1)
