"""What every test is held to: nothing it started is left behind."""

import gc
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.compiled_first import compile_first
from tests.databases.compiled import kept_statements
from tests.databases.patience import patient_server
from tests.databases.template import copied_clusters, copied_ledgers
from tests.everyday_share import left_out
from tests.leaks import nothing_left
from tests.longest_first import LONGEST_FIRST, scheduler
from tests.run_summary import pytest_sessionfinish, pytest_terminal_summary

__all__ = ["pytest_sessionfinish", "pytest_terminal_summary"]

# Images of containers often forbid compiled modules: each of the suite's many processes would then compile all that it imports anew,
# which takes longer than most of what they are asked to do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The gate asks the same questions each time, and no clock decides; LODGER_FUZZ=whole draws new ones, and tells how to draw them again.
# LODGER_FUZZ=brief asks few, for `make quick`; a number asks each property of a rule that often.
FUZZ = os.environ.get("LODGER_FUZZ", "")
settings.register_profile(
    "gate",
    deadline=None,
    derandomize=FUZZ != "whole" and not FUZZ.isdigit(),
    max_examples=int(FUZZ) if FUZZ.isdigit() else {"whole": 400, "brief": 5}.get(FUZZ, 15),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gate")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out the tests of long files one by one."""
    return scheduler(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not everyday, and put the files that take longest first; the order within a file stays."""
    if not any("::" in each for each in config.args) and (out := left_out(items)):
        config.hook.pytest_deselected(items=list(out))
        items[:] = [item for item in items if item not in out]
    here = Path(__file__).parent
    place = {here / name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


if os.environ.get("LODGER_COMPILED"):  # every script runs from the image of its version, whatever its size
    compile_first()

#: Collecting makes a million objects that stay: looking through them for garbage meanwhile is a third of its time.
gc.disable()


def pytest_collection_finish() -> None:
    """Take what collecting has made out of what is looked through for garbage, and look less often.

    A server's routes are tens of thousands of objects: looking through them after every 700 that are made was a sixth of its tests' time.
    """
    gc.enable()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture(scope="module")
def uncollected() -> Iterator[None]:
    """For modules that parse the tree: its nodes are no garbage, and looking through a million of them costs more than parsing."""
    gc.disable()
    yield
    gc.enable()


# Most tests store scripts to see what becomes of them later, in ledgers of their own: each would wait for walls to rise. What looks at
# sources says so: tests/node/test_source_check.py.
os.environ.setdefault("LODGER_CHECK_SCRIPTS", "false")


@pytest.fixture(scope="session", autouse=True)
def ready_ledgers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Ledgers and PostgreSQL servers begin as copies of those that are set up, and what one has compiled serves all."""
    own = tmp_path_factory.getbasetemp()
    run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # of all processes
    with copied_ledgers(tmp_path_factory.mktemp("template")), copied_clusters(run), kept_statements(), patient_server():
        yield


@pytest.fixture(autouse=True)
def own_log(pytestconfig: pytest.Config) -> Iterator[None]:
    """Where what is noted goes, and in which form, is as it was: a command that is carried out here sends it elsewhere, or silences it."""
    noted = logging.getLogger("lodger")
    level, propagate, handlers = noted.level, noted.propagate, list(noted.handlers)
    plugin: Any = pytestconfig.pluginmanager.get_plugin("logging-plugin")  # its handlers are the logger's own, too
    formatters = [(each, each.formatter) for each in (plugin.caplog_handler, plugin.report_handler)]
    yield
    for each, formatter in formatters:
        each.setFormatter(formatter)
    noted.setLevel(level)
    noted.propagate, noted.handlers[:] = propagate, handlers


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """What carries out tests that are coroutines: a loop of asyncio for each."""
    return "asyncio"


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Processes, descriptors, threads and tasks after a test are those from before it."""
    with nothing_left():
        yield
