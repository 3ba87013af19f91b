"""After an attempt, however it ended, nothing of it is left: no process, descriptor, shared memory, key or file."""

import os
from pathlib import Path

from tests.limits.machine import MIB, Machine

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


def things() -> dict[str, set[str]]:
    shared = {f"{kind} {line.split()[1]}" for kind in ("shm", "msg", "sem") for line in _lines(f"/proc/sysvipc/{kind}")[1:]}
    files = set(os.listdir("/dev/shm")) | {name for name in os.listdir("/tmp") if "lodger" in name}
    return {"shared memory": shared, "keys": {line.split()[0] for line in _lines("/proc/keys")}, "files": files}


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def test_nothing_is_left(js: Machine) -> None:
    js("return 1")
    for name, (code, limits) in ENDINGS.items():
        pid = js.pool.ready[0]
        before, started = things(), os.times().elapsed
        report = js(code, **limits)
        assert not Path(f"/proc/{pid}").exists(), f"{name}: the worker was still there when its report came"
        took_ms = (os.times().elapsed - started) * 1000 - report.usage.wall_ms
        assert took_ms < 20 * 500, name
        after = things()
        assert {kind: after[kind] - before[kind] for kind in after} == {"shared memory": set(), "keys": set(), "files": set()} or any(
            after[kind] - before[kind] - things()[kind] for kind in after
        ), name
        held = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}
        assert not any(str(pid) in what for what in held), name
