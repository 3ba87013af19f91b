"""The doctor: an entry for every wall of the zygote's report, JSON output, remedies for missing walls."""

import asyncio
import json

from tests.escape.probing import probe_pool

from lodger.sandbox.child import boot
from lodger.sandbox.doctor import WALLS, Doctor


def test_every_wall_of_the_boot_order_is_known() -> None:
    assert {wall.name for wall in WALLS} == {*boot.WALLS, "cgroup"}
    assert all(wall.remedy and wall.holds_off for wall in WALLS)


def test_examination_without_a_pool() -> None:
    findings = Doctor.examine()
    assert {finding.state for finding in findings} <= {"available", "missing"}
    body = json.loads(json.dumps(Doctor.as_json(findings)))
    assert [wall["wall"] for wall in body["walls"]] == [wall.name for wall in WALLS]
    for wall in body["walls"]:
        assert (wall["state"] == "missing") == bool(wall["why"]) == bool(wall["remedy"])


def test_examination_of_what_stands() -> None:
    async def go(without: str) -> dict[str, str]:
        pool = probe_pool(without.split())
        await pool.start()
        assert pool.zygote is not None
        walls = pool.zygote.walls
        await pool.stop()
        return walls

    walls = asyncio.run(go("landlock"))
    states = {finding.wall: finding.state for finding in Doctor.examine(walls)}
    assert states["seccomp"] == "active"
    assert states["landlock"] == "missing"
    body = Doctor.as_json(Doctor.examine({**walls, "seccomp": "gone"}))
    assert body["ok"] is False
    assert body["problem"]["code"] == "wall_missing"
