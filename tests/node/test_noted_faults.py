"""What the host lacks is noted in one line; only a fault of ours carries its traceback."""

import logging
from pathlib import Path

import pytest
from tests.node.harness import Script, working

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import Fault
from lodger.engine.node.reporting import Outages


async def test_a_full_disk_is_no_traceback_and_a_bug_is_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "lodger.node"):
        async with working(tmp_path, Script()) as (_engine, node, _signals):
            node.context.bus.publish(Fault("ends", Unavailable("disk_full", place="ledger", reason="the disk is full")))
            node.context.bus.publish(Fault("due-clocks", ZeroDivisionError("ours")))
            for _ in range(700):
                node.context.bus.publish(
                    Fault("ends", Unavailable("disk_full", place="ledger", reason="the disk is full"))
                )
    disk, bug = caplog.records
    assert disk.exc_info is None
    assert bug.exc_info


def test_an_outage_is_a_line_when_it_begins_one_every_thirty_seconds_and_one_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = 0.0
    outages = Outages(logging.getLogger("lodger.node"), lambda: now_s)
    with caplog.at_level(logging.WARNING, "lodger.node"):
        for service in ("ledger-loop", "recovery") * 44:
            outages.failed(service, Unavailable("database_unreachable", place="db", reason="refused"))
            outages.works()
            now_s += 0.5
        outages.works()
        now_s += 20
        outages.works()
        outages.works()
    first, still, over = [record.getMessage() for record in caplog.records]
    assert first.startswith("ledger-loop: database_unreachable: ")
    assert "database_unreachable for 30 s, 61 failures" in still
    assert over == "database_unreachable is over: 44 s, 88 failures"
