"""``lodger escape`` as a tester uses it: filters, the stable JSON, the two files, an attack of her own, and exit codes."""

from pathlib import Path
from xml.etree import ElementTree

from tests.e2e.command import lodger

OWN = """
from lodger.sandbox.escape.case import Case
from lodger.sandbox.escape.evidence import answers

WALK = "return setTimeout(() => {}).constructor.constructor('return typeof $s')();"
CASES = [
    Case("A3-my-walk", "host_names", "a timer's id", WALK, seen=answers("undefined")),
    Case("A3-my-wish", "host_names", "a wish", "return typeof globalThis;", seen=answers("undefined")),
]
"""


def test_json_and_filters() -> None:
    said = lodger("escape", "--case", "A3-object-constructor", "--case", "B33-timer", "--json")
    assert said.code == 0, said
    body = said.json
    assert {case["id"] for case in body["cases"]} >= {"A3-object-constructor", "B33-timer"}
    first = next(case for case in body["cases"] if case["id"] == "A3-object-constructor")
    assert (first["class"], first["wall"], first["runtime"], first["status"], first["outcome"]) == (
        3,
        "host_names",
        "quickjs",
        "contained",
        "ok",
    )
    assert first["evidence"]
    assert first["only_its_wall"] is first["no_wall"] is None
    assert body["walls"]
    assert body["host"]["kernel"]


def test_matrix_and_files(tmp_path: Path) -> None:
    page, xml = tmp_path / "r.html", tmp_path / "r.xml"
    said = lodger("escape", "--case", "A3-array-constructor", "--matrix", "--json", "--html", page, "--junit", xml)
    assert said.code == 0, said
    assert [case["runtime"] for case in said.json["cases"]] == ["quickjs", "quickjs-native"]
    for case in said.json["cases"]:
        assert (case["only_its_wall"], case["no_wall"]) == ("contained", "escaped")
    assert said.json["matrix"] == {"tried": 2, "held_behind_only_its_wall": 2, "escaped_behind_none": 2}
    assert page.read_text().startswith("<!doctype html>")
    assert ElementTree.fromstring(xml.read_text().encode()).get("tests") == "2"


def test_an_attack_of_ones_own_that_escapes_is_told(tmp_path: Path) -> None:
    own = tmp_path / "my_attacks.py"
    own.write_text(OWN)
    said = lodger("escape", "--with", own, "--case", "A3-my-", "--runtime", "quickjs")
    assert said.code == 1
    assert "1 contained, 1 escaped of 2 attacks" in said.out
    assert "again: lodger escape --case A3-my-wish" in said.out


def test_wrong_usage() -> None:
    for arguments in (("--case", "Z9"), ("--runtime", "v8"), ("--with", "nowhere.py")):
        said = lodger("escape", *arguments, "--json")
        assert said.code == 2, said
        assert said.json["error"]["fix"]


def test_the_list_names_every_wall() -> None:
    said = lodger("escape", "--list", "--json")
    cases = said.json["cases"]
    assert len(cases) >= 400
    assert {"seccomp", "cpu_timer", "host_names", "store_limit"} <= {case["wall"] for case in cases}
