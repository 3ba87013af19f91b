"""What the host lacks is noted in one line; only a fault of ours carries its traceback."""

import asyncio
import logging
from pathlib import Path

import pytest
from tests.node.harness import Script, working

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import Fault


def test_a_full_disk_is_no_traceback_and_a_bug_is_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with working(tmp_path, Script()) as (_engine, node, _signals):
            node.context.bus.publish(Fault("ends", Unavailable("disk_full", place="ledger", reason="the disk is full")))
            node.context.bus.publish(Fault("due-clocks", ZeroDivisionError("ours")))

    with caplog.at_level(logging.ERROR, "lodger.node"):
        asyncio.run(scenario())
    disk, bug = caplog.records
    assert disk.exc_info is None
    assert bug.exc_info
