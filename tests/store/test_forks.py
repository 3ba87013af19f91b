"""An engine that was opened before a fork, as by a server that loads the application first: each process has its own connections."""

import os
from collections.abc import Callable

from lodger.engine.sync import Engine


def in_child(work: Callable[[], object]) -> None:
    """Run a function in a forked child; what it raises fails the test."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_children_and_parent_use_one_engine(url: str) -> None:
    with Engine.open(url) as engine:
        engine.tenants.create("before")
        for number in range(3):
            in_child(lambda: engine.tenants.create(f"child{number}"))  # noqa: B023 - called in the same round
            engine.tenants.create(f"parent{number}")
        in_child(lambda: [engine.tenants.get("parent2") for _ in range(20)])
        names = {each.id for each in engine.tenants.list()}
    assert names == {"before", *(f"{process}{number}" for process in ("child", "parent") for number in range(3))}
