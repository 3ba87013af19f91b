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


def table(path: str) -> list[list[str]]:
    try:
        return [line.split() for line in Path(path).read_text().splitlines()]
    except OSError:
        return []


def belongings(uid: int) -> list[str]:
    """What of the kernel's things belongs to a user, beside processes."""
    found = [
        f"{kind} {row}" for kind in ("shm", "msg", "sem") for row in table(f"/proc/sysvipc/{kind}") if str(uid) in row
    ]
    found += [f"key {row}" for row in table("/proc/keys") if row[5] == str(uid)]
    return found + [
        str(path) for folder in ("/dev/shm", "/tmp") for path in Path(folder).iterdir() if path.lstat().st_uid == uid
    ]


def test_nothing_is_left(js: Machine) -> None:
    for name, (code, limits) in ENDINGS.items():
        pid = js.worker()
        uid = int(next(row[1] for row in table(f"/proc/{pid}/status") if row[0] == "Uid:"))
        started = os.times().elapsed
        report = js(code, **limits)
        over_ms = (os.times().elapsed - started) * 1000 - report.usage.wall_ms
        assert not Path(f"/proc/{pid}").exists(), f"{name}: the worker is still there when its report has come"
        assert over_ms < 20 * 500, name
        if uid != os.getuid():  # workers that share our user cannot be told from us
            assert not belongings(uid), name
