"""Signals of a pool, and the processes below it."""

import asyncio
import os
import select
from pathlib import Path

from tests.escape.probing import Echo

from lodger.sandbox import Pool
from lodger.sandbox.job import LogLine, Reply

LEFT_OVER_S = 5.0  # 0.5 are promised; a busy machine gets ten times that


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def zygote_pid(pool: Pool) -> int:
    assert pool.zygote is not None
    return children_of(pool.zygote.launcher_pid)[0]


def has_ended(pid: int) -> bool:
    """Whether a process has ended, be it a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_gone(*pids: int) -> None:
    """Wait for processes by pidfd."""
    for pid in pids:
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            poll = select.poll()
            poll.register(pidfd, select.POLLIN)
            assert poll.poll(LEFT_OVER_S * 1000), f"{pid} is still there"
        finally:
            os.close(pidfd)


class Signals(Echo):
    """Host that signals when a script makes a call, and lets it wait."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()
        self.let_go = asyncio.Event()

    async def call(self, name: str, arguments: str) -> Reply:
        self.reached.set()
        await self.let_go.wait()
        return await super().call(name, arguments)

    def log(self, line: LogLine) -> None:
        self.reached.set()
