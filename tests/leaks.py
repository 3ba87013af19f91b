"""What tests leave behind: processes, descriptors, threads and tasks."""

import asyncio
import gc
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.ready import LASTING_CHILDREN, LASTING_DESCRIPTORS

#: What a test has told to end may still be ending: the kernel and other threads need their turn on a busy machine.
PATIENCE_S = 10


@contextmanager
def nothing_left() -> Iterator[None]:
    """Processes, descriptors, threads and tasks after the block are those from before it."""
    descriptors, children, threads = _descriptors(), _children(), set(threading.enumerate())
    yield
    for generation in (
        1,
        2,
    ):  # what reference cycles keep alive; most is young, and looking through all objects takes a tenth of a second
        if _left(descriptors, children, threads):
            gc.collect(generation)
    patience = time.monotonic() + PATIENCE_S
    while (left := _left(descriptors, children, threads)) and time.monotonic() < patience:
        time.sleep(0.01)
    assert not left, f"left behind: {left}"
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


@pytest.fixture(autouse=True, scope="module")
def no_leaks() -> Iterator[None]:
    """Of a module, not of each test, for modules whose tests share what they start."""
    with nothing_left():
        yield


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


def _left(descriptors: dict[str, str], children: set[str], threads: set[threading.Thread]) -> list[str]:
    """Return what was left behind: descriptors, processes and threads that are new."""
    left = [
        f"descriptor {fd}: {what}"
        for fd, what in _descriptors().items()
        if fd not in descriptors and fd not in LASTING_DESCRIPTORS and "/proc/" not in what
    ]
    left += [f"process {child}" for child in _children() - children - LASTING_CHILDREN]
    return left + [str(thread) for thread in threading.enumerate() if thread not in threads and thread.is_alive()]
