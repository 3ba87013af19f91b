"""Reports of the suite: stable JSON, valid JUnit XML, an HTML page with all texts escaped; and consistency of the cases."""

import asyncio
import json
import os
import socket
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.escape.matrix import realm_edits

from lodger.escape import invariants
from lodger.escape.case import Case
from lodger.escape.cases import all_cases
from lodger.escape.report import as_json, as_junit, passed
from lodger.escape.runner import Suite
from lodger.sandbox import Outcome
from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.runtimes.settings import native_settings

NASTY = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\x00\x1b[2J\ud800]]>"


@pytest.fixture(scope="module")
def suite() -> Suite:
    made = Suite(
        (
            Case("A3-good", "host_names", "nothing", "return 1;"),
            Case("A3-nasty", "host_names", NASTY, f"throw new Error({json.dumps(NASTY)});", (Outcome.OK,), story=NASTY),
        )
    )
    asyncio.run(made.run())
    return made


def test_json_has_the_stable_shape(suite: Suite) -> None:
    body = json.loads(json.dumps(as_json(suite.findings, suite.walls)))
    assert set(body) >= {"cases", "walls", "host", "summary", "ok"}
    assert set(body["cases"][0]) >= {
        "id",
        "class",
        "wall",
        "runtime",
        "status",
        "outcome",
        "evidence",
        "only_its_wall",
        "no_wall",
    }
    assert body["cases"][0]["class"] == 3
    assert body["summary"] == {
        "contained": 2,
        "escaped": 0,
        "failed": 2,
        "slow": 0,
        "skipped": 0,
        "triples": 4,
        "attacks": 2,
    }
    assert body["ok"] is passed(suite.findings) is False
    assert body["walls"]["rlimits"] is True


def test_junit_is_xml(suite: Suite) -> None:
    root = ElementTree.fromstring(as_junit(suite.findings).encode("utf-8"))
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == ("4", "2", "0")
    assert len(root.findall("testcase")) == 4


def test_every_edit_of_the_realm_still_fits() -> None:
    guest = artefact.read_sources()
    native = [(Path(path).name, Path(path).read_text()) for path in native_settings()["library"].split("\n")]
    for edit in realm_edits.EDITS:
        assert realm_edits.edited(native, [edit]) != native, edit
        assert realm_edits.edited(guest, [edit]) != guest, edit
    with pytest.raises(realm_edits.EditFailed):
        realm_edits.edited([("bootstrap.js", "// empty")], ["host_names"])


def test_canaries_notice() -> None:
    canaries = invariants.Canaries()
    try:
        assert canaries.changes() == []
        Path(canaries.path).write_text("other")
        with socket.create_connection(("127.0.0.1", canaries.port)), socket.socket():
            found = canaries.changes()
        assert any("file" in text for text in found)
        assert any("TCP" in text for text in found)
        assert any("descriptors" in text for text in found)
    finally:
        canaries.close()


def test_two_equal_attacks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from lodger.escape.cases.scripts import standing_walls

    monkeypatch.setattr(standing_walls, "CASES", [*standing_walls.CASES, standing_walls.CASES[0]])
    with pytest.raises(ValueError, match="one attack"):
        all_cases()
    with pytest.raises(ValueError, match="not like"):
        Case("Z1-x", "host_names", "no such chapter", "")


def test_what_other_programs_take_away_meanwhile_ends_no_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a file in shared memory deleted by another program during the run."""
    (tmp_path / "left").touch()
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([folder / "gone", folder / "left"]))
    assert invariants.files_owned_by(tmp_path, range(os.geteuid(), os.geteuid() + 1)) == ["left"]
    assert invariants.files_owned_by(tmp_path, range(os.geteuid() + 1, os.geteuid() + 2)) == []
