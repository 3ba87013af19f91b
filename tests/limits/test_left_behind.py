"""After an attempt with any outcome, no process, descriptor, shared memory, key or file is left."""

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.escape.commands import HELLO, LOOP, command
from tests.limits.machine import MIB, Machine
from tests.limits.programs import ENDLESS

from lodger.sandbox.walls.identity import UIDS_PER_ZYGOTE

ENDINGS = {
    "ok": ("return 1", {}),
    "error": ("throw new Error('x')", {}),
    "cpu": ("for (;;);", {"cpu_ms": 50}),
    "wall": ("await new Promise((f) => setTimeout(f, 60000))", {"wall_ms": 50}),
    "memory": ("const a = []; for (;;) a.push({})", {"memory_bytes": 16 * MIB}),
    "stack": ("(function f() { f() })()", {}),
    "result": ("return 'x'.repeat(300000)", {}),
    "an open call": ("kv.get('k'); for (;;);", {"cpu_ms": 50}),
}


def words_of_file(path: str) -> list[list[str]]:
    """Return the words of each line of a file of /proc; none if there is no such file."""
    try:
        return [line.split() for line in Path(path).read_text().splitlines()]
    except OSError:
        return []


def belongings(uid: int) -> list[str]:
    """Return kernel objects other than processes that a zygote's user ids own."""
    first = uid - uid % UIDS_PER_ZYGOTE
    uids = {str(each) for each in range(first, first + UIDS_PER_ZYGOTE)}
    found = [
        f"{kind} {row}"
        for kind in ("shm", "msg", "sem")
        for row in words_of_file(f"/proc/sysvipc/{kind}")
        if uids & {*row}
    ]
    found += [f"key {row}" for row in words_of_file("/proc/keys") if row[5] in uids]
    folders = (Path("/dev/shm"), Path("/tmp"))
    return found + [str(path) for folder in folders for path in folder.iterdir() if str(path.lstat().st_uid) in uids]


def held() -> Counter[str]:
    """Return this process's descriptors by type, and its shared memory."""
    found: Counter[str] = Counter()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found[os.readlink(f"/proc/self/fd/{name}").partition(":")[0]] += 1
    found.update(row[-1] for row in words_of_file("/proc/self/maps") if row[1].endswith("s"))
    return found


def overhead_ms(machine: Machine, program: str | bytes, limits: dict[str, int]) -> float:
    """Return how much longer a run took than its measured wall time, in milliseconds."""
    started = os.times().elapsed
    report = machine(program, **limits)
    return (os.times().elapsed - started) * 1000 - report.usage.wall_ms


def uid_of(pid: int) -> int:
    return int(next(row[1] for row in words_of_file(f"/proc/{pid}/status") if row[0] == "Uid:"))


def test_nothing_is_left_of_a_script(js: Machine) -> None:
    for name, (code, limits) in ENDINGS.items():
        pid = js.worker()
        uid = uid_of(pid)
        assert overhead_ms(js, code, limits) < 20 * 500, name
        assert not Path(f"/proc/{pid}").exists(), f"{name}: the worker is still there when its report has come"
        if uid != os.getuid():  # objects of workers with the engine's uid cannot be distinguished
            assert not belongings(uid), name


MODULES: dict[str, tuple[bytes, dict[str, int]]] = {
    "ok": (HELLO, {}),
    "trap": (command("unreachable"), {}),
    "exit": (command("(call $proc_exit (i32.const 3))"), {}),
    "cpu": (LOOP, {"cpu_ms": 50}),
    "wall": (ENDLESS["wall_ms"][1], {"wall_ms": 50}),
    "memory": (command("(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable"), {}),
    "result": (command("(loop $l (call $out (i32.const 1) (i32.const 0) (i32.const 60000)) (br $l))"), {}),
    "no module": (b"\0asm", {}),
}


def test_nothing_is_left_of_a_module() -> None:
    wasm = Machine("wasm")
    try:
        for module, limits in MODULES.values():
            wasm(module, **limits)  # compiled in advance; the cached code stays
        before = held_when_ready(wasm)
        for name, (module, limits) in MODULES.items():
            pid = wasm.worker()
            uid = uid_of(pid)
            assert overhead_ms(wasm, module, limits) < 20 * 500, name
            assert not Path(f"/proc/{pid}").exists() or name == "no module", f"{name}: the worker is still there"
            assert not held_when_ready(wasm) - before, name
            if uid != os.getuid():
                assert not belongings(uid), name
    finally:
        wasm.close()


def held_when_ready(machine: Machine) -> Counter[str]:
    """Return what this process holds once the pool has all of its workers."""
    machine.worker(2)
    return held()
