"""``lodger escape`` as a tester uses it: filters, the stable JSON, the two files, an attack of her own, and exit codes."""

import re
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.e2e.command import ROOT, inside
from tests.e2e.ready import lodger

GUIDE = ROOT / "docs" / "escape-suite.md"
#: What the guide's attack looks like when it gets what it wants.
WISH = ("return setTimeout(() => {}).constructor.constructor('return typeof $s')();", "return typeof globalThis;")


matrix = partial(lodger, module="tests.escape.matrix")


def ten_lines() -> str:
    """The attack that the guide shows, as a tester would copy it."""
    return re.search(r"```python\n(# my_attacks.py\n.*?)```", GUIDE.read_text(), re.DOTALL)[1]


def test_quick_is_one_attack_of_each_class() -> None:
    every, quick = (lodger("escape", "--list", "--json", *more).json["cases"] for more in ((), ("--quick",)))
    classes = [case["class"] for case in quick]
    assert sorted(classes) == sorted({case["class"] for case in every})
    assert [case["id"] for case in quick] == [each["id"] for each in every if each in quick]
    (one,) = lodger("escape", "--quick", "--class", "A3", "--list", "--json").json["cases"]
    assert one["class"] == 3


def test_matrix_and_files(tmp_path: Path) -> None:
    page, xml = tmp_path / "r.html", tmp_path / "r.xml"
    said = matrix("--case", "A3-array-constructor", "--json", "--html", page, "--junit", xml, LODGER_RUNTIMES="all")
    assert said.code == 0, said
    assert [case["runtime"] for case in said.json["cases"]] == ["quickjs", "quickjs-native"]
    for case in said.json["cases"]:
        assert (case["only_its_wall"], case["no_wall"]) == ("contained", "escaped")
    assert said.json["matrix"] == {"tried": 2, "held_behind_only_its_wall": 2, "escaped_behind_none": 2}
    assert page.read_text().startswith("<!doctype html>")
    assert ElementTree.fromstring(xml.read_text().encode()).get("tests") == "2"


def test_the_ten_lines_of_the_guide(tmp_path: Path) -> None:
    own = tmp_path / "my_attacks.py"
    own.write_text(ten_lines())
    body = [line for line in ten_lines().splitlines() if line.strip() and not line.startswith(("#", "from"))]
    assert len(body) == 10
    said = matrix("--with", own, "--case", "A3-my-", "--json", LODGER_RUNTIMES="all")
    assert said.code == 0, said
    assert {(case["id"], case["only_its_wall"], case["no_wall"]) for case in said.json["cases"]} == {
        ("A3-my-walk", "contained", "escaped")
    }
    assert {case["runtime"] for case in said.json["cases"]} == {"quickjs", "quickjs-native"}


def test_an_attack_of_ones_own_that_escapes_is_told(tmp_path: Path) -> None:
    own = tmp_path / "my_attacks.py"
    assert WISH[0] in ten_lines()
    own.write_text(ten_lines().replace(*WISH))
    said = lodger("escape", "--with", own, "--case", "A3-my-", "--runtime", "quickjs")
    assert said.code == 1
    assert "1 escaped of 1 runs: 1 attacks in 1 variants" in said.out
    assert "again: lodger escape --case A3-my-walk --runtime quickjs" in said.out


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CASES = [", "attacks_broken"),
        ("raise SystemError", "attacks_broken"),
        ("x = 1", "no_cases"),
        ("CASES = [1]", "no_cases"),
        (ten_lines().replace("A3-my-walk", "my walk"), "attacks_broken"),
        (ten_lines().replace('"host_names"', '"a wall that nobody built"'), "attacks_broken"),
    ],
)
def test_a_file_of_ones_own_that_is_wrong(tmp_path: Path, text: str, code: str) -> None:
    own = tmp_path / "my_attacks.py"
    own.write_text(text)
    said = inside("escape", "--with", own, "--json")
    assert (said.code, said.json["error"]["code"]) == (2, code), said
    assert said.json["error"]["fix"]


def test_filters_narrow_each_other() -> None:
    def listed(*filters: str) -> set[str]:
        return {case["id"] for case in inside("escape", "--list", "--json", *filters).json["cases"]}

    everything = listed()
    assert len(everything) > 1000
    assert inside("escape", "--list", "--class", "B16", "--runtime", "wasm").code == 2, "nothing is left"
    assert listed("--class", "I") == {name for name in everything if name.startswith("I")}
    assert listed("--class", "b16") == listed("--class", "16") == {n for n in everything if n.startswith("B16-")}
    assert listed("--class", "B16", "--class", "A3") == listed("--class", "B16") | listed("--class", "A3")
    assert listed("--wall", "engine_memory"), "a wall has another name on another runtime"
    assert listed("--class", "B23", "--wall", "store_limit") < listed("--class", "B23")


def test_a_report_without_a_place_is_told_before_the_attacks(tmp_path: Path) -> None:
    for option in ("--html", "--junit"):
        said = inside("escape", "--case", "A3-", option, tmp_path / "nowhere" / "r", "--json")
        assert (said.code, said.json["error"]["code"]) == (2, "not_writable"), said


def test_wrong_usage() -> None:
    for arguments in (("--case", "Z9"), ("--runtime", "v8"), ("--with", "nowhere.py")):
        said = inside("escape", *arguments, "--json")
        assert said.code == 2, said
        assert said.json["error"]["fix"]
