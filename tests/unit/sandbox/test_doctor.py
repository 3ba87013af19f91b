"""The doctor: an entry for every wall of the zygote's report, JSON output, remedies for missing walls."""

import json

from tests.escape.probing import probe_pool

from lodger.sandbox.doctor import WALLS, Doctor


async def report_of_a_zygote(without: str = "") -> dict[str, str]:
    """Return what a zygote says of its walls, without some of them."""
    pool = probe_pool(without.split())
    await pool.start()
    assert pool.zygote is not None
    walls = pool.zygote.walls
    await pool.stop()
    return walls


async def test_every_wall_of_the_boot_order_is_known() -> None:
    assert {wall.name for wall in WALLS} == {*await report_of_a_zygote(), "cgroup"}
    assert all(wall.remedy and wall.holds_off for wall in WALLS)


def test_examination_without_a_pool() -> None:
    findings = Doctor.examine()
    assert {finding.state for finding in findings} <= {"available", "missing"}
    body = json.loads(json.dumps(Doctor.as_json(findings)))
    assert [wall["wall"] for wall in body["walls"]] == [wall.name for wall in WALLS]
    for wall in body["walls"]:
        assert (wall["state"] == "missing") == bool(wall["why"]) == bool(wall["remedy"])


async def test_examination_of_what_stands() -> None:
    walls = await report_of_a_zygote("landlock")
    states = {finding.wall: finding.state for finding in Doctor.examine(walls)}
    assert states["seccomp"] == "active"
    assert states["landlock"] == "missing"
    body = Doctor.as_json(Doctor.examine({**walls, "seccomp": "gone"}))
    assert body["ok"] is False
    assert body["problem"]["code"] == "wall_missing"
