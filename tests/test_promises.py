"""The sheet of promises (docs/promises.md): each promise names a test that is collected, or a command that exists."""

import re
import shlex
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests import reference_pages
from tests.pages import parse

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "promises.md"
PROOF = ROOT / "docs" / "proof.md"


def promises(page: str) -> list[tuple[str, list[str], str]]:
    """Return each promise of the table with what proves it, and its latest full run."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| **")
    ]
    return [(promise, re.findall(r"`([^`]+)`", proof), latest) for promise, proof, latest in rows]


@cache
def number_of_tests(path: Path) -> int:
    """Return the number of test functions in a file, or in all files of a folder."""
    files = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
    return sum(len(re.findall(r"^(?:    )?(?:async )?def test_", file.read_text(), re.MULTILINE)) for file in files)


def check(proof: str) -> None:
    """Raise AssertionError unless the test, the module or the command exists."""
    words = shlex.split(proof)
    if words[0] == "lodger":
        parse(reference_pages.everything(), words[1:])
    elif words[:2] == ["python", "-m"]:
        assert find_spec(words[2]) is not None, proof
    elif words[0].startswith("tests/"):
        path, _, name = words[0].partition("::")
        assert (ROOT / path).exists(), proof
        assert (ROOT / path).is_dir() or Path(path).name.startswith("test_"), f"{proof} is not collected"
        assert number_of_tests(ROOT / path), f"{proof} has no test"
        assert not name or f"def {name}(" in (ROOT / path).read_text(), proof
    else:
        assert (ROOT / words[0]).is_file(), proof


PROMISES = promises(PAGE.read_text())


@pytest.mark.parametrize(
    ("promise", "proofs", "latest"), PROMISES, ids=[re.split(r"\*\*", each[0])[1] for each in PROMISES]
)
def test_a_promise_is_proved(promise: str, proofs: list[str], latest: str) -> None:
    assert proofs, f"nothing proves: {promise}"
    for proof in proofs:
        check(proof)
    assert unsourced(latest, PROOF.read_text()) == []


def unsourced(latest: str, source: str) -> list[str]:
    """Return the dates and figures of a latest run that its source does not have."""
    figures = re.findall(r"\d{4}-\d\d-\d\d|(?<![\d-])\d[\d ]*\.?\d*(?![\d-])", re.sub(r"\]\([^)]*\)", "", latest))
    return [figure for figure in figures if figure.strip() not in source]


def test_a_promise_without_its_test_is_found() -> None:
    page = "| **A.** x | `tests/sim` | |\n| **B.** y | nothing | |\n"
    assert promises(page) == [("**A.** x", ["tests/sim"], ""), ("**B.** y", [], "")]
    for wrong in (
        "tests/sim/test_none.py",
        "tests/sim/planted_bugs.py",
        "python -m tests.none",
        "lodger bench none",
        "bench/developer/none.py",
    ):
        with pytest.raises(AssertionError):
            check(wrong)


def test_a_figure_without_a_source_is_found() -> None:
    assert unsourced("2026-11-24: 2057 of 2057, 0.05 s", "on 2026-11-24: 2057; after 0.05 s") == []
    assert unsourced("2026-11-25: 0.06 s", "on 2026-11-24: 2057; after 0.05 s") == ["2026-11-25", "0.06"]


def test_every_row_is_read() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert len(PROMISES) == len(rows) - 1  # without the head
