"""What every test is held to: nothing it started is left behind."""

import asyncio
import gc
import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.databases.compiled import kept_statements
from tests.databases.patience import patient_server
from tests.databases.template import copied_ledgers
from tests.longest_first import LONGEST_FIRST

# The gate asks the same questions each time, and no clock decides; LODGER_FUZZ=whole draws new ones, and tells how to draw them again.
settings.register_profile(
    "gate",
    deadline=None,
    derandomize=os.environ.get("LODGER_FUZZ") != "whole",
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gate")
#: What a test has told to end may still be ending: the kernel and other threads need their turn on a busy machine.
PATIENCE_S = 10


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first; the order within a file stays."""
    here = Path(__file__).parent
    place = {here / name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


def pytest_collection_finish() -> None:
    """Take what collecting has made out of what is looked through for garbage: a million objects that stay to the end."""
    gc.collect()
    gc.freeze()


# Most tests store scripts to see what becomes of them later, in ledgers of their own: each would wait for walls to rise. What looks at
# sources says so: tests/node/test_source_check.py.
os.environ.setdefault("LODGER_CHECK_SCRIPTS", "false")


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
    left = [
        f"descriptor {fd}: {what}"
        for fd, what in _descriptors().items()
        if fd not in descriptors and "/proc/" not in what
    ]
    left += [f"process {child}" for child in _children() - children]
    return left + [str(thread) for thread in threading.enumerate() if thread not in threads and thread.is_alive()]


@pytest.fixture(scope="session", autouse=True)
def ready_ledgers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """SQLite ledgers begin as copies of one that is set up, and what one has compiled serves all."""
    with copied_ledgers(tmp_path_factory.mktemp("template")), kept_statements(), patient_server():
        yield


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """Where what is noted goes is as it was: a command that is carried out here sends it elsewhere, or silences it."""
    noted = logging.getLogger("lodger")
    level, propagate, handlers = noted.level, noted.propagate, list(noted.handlers)
    yield
    noted.setLevel(level)
    noted.propagate, noted.handlers[:] = propagate, handlers


@pytest.fixture(autouse=True)
def no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Processes, descriptors, threads and tasks after a test are those from before it."""
    descriptors, children, threads = _descriptors(), _children(), set(threading.enumerate())
    yield
    if _left(descriptors, children, threads):
        gc.collect()  # only what reference cycles keep alive gets a second look: collecting after each test cost half the suite
    patience = time.monotonic() + PATIENCE_S
    while (left := _left(descriptors, children, threads)) and time.monotonic() < patience:
        time.sleep(0.01)
    assert not left, f"left behind: {left}"
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
