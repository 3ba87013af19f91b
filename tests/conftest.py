"""What every test is held to: nothing it started is left behind."""

import asyncio
import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest


def _descriptors() -> dict[str, str]:
    table = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            table[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
    return table


def _children() -> set[str]:
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found.update((task / "children").read_text().split())
        except OSError:
            continue
    return found


@pytest.fixture(autouse=True)
def no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Processes, descriptors, threads and tasks after a test are those from before it."""
    descriptors, children, threads = _descriptors(), _children(), set(threading.enumerate())
    yield
    gc.collect()
    left = {fd: what for fd, what in _descriptors().items() if fd not in descriptors and "/proc/" not in what}
    assert not left, f"descriptors left open: {left}"
    assert not _children() - children, "processes left running"
    started = [thread for thread in threading.enumerate() if thread not in threads and thread.is_alive()]
    assert not started, f"threads left running: {started}"
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
