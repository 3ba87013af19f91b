"""What surrounds a measurement: a host that answers null, and one spinning process per core as on a busy node."""

import os
import subprocess
import sys
from types import TracebackType
from typing import Self

from lodger.sandbox.job import LogLine, Reply


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


class NoHost:
    """Answers every call with null and forgets every line."""

    async def call(self, name: str, arguments: str) -> Reply:
        """Answer null."""
        return Reply(True, "null")

    def log(self, line: LogLine) -> None:
        """Forget it."""
