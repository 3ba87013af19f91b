"""The load of a host: one spinning process per core beside a measurement, and the CPU time of processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self


class BusyCores:
    """Spins while entered; ends its processes on the way out."""

    def __init__(self, count: int | None = None) -> None:
        self.count = len(os.sched_getaffinity(0)) if count is None else count
        self._spinning: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        command = [sys.executable, "-I", "-S", "-c", "while True: pass"]
        self._spinning = [subprocess.Popen(command) for _ in range(self.count)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._spinning:
            process.kill()
        for process in self._spinning:
            process.wait()
        self._spinning = []


def tree(pid: int) -> Iterator[int]:
    """Return a process and everything below it; what ends meanwhile is left out."""
    yield pid
    children: list[str] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # a thread that has ended; the others' children count
                children += (task / "children").read_text().split()
    for child in children:
        yield from tree(int(child))


def main_thread_ms(pid: int) -> float | None:
    """Return the CPU time of a process's main thread in milliseconds; None if it ended, or if the kernel does not tell."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6
    return None
