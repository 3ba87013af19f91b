"""The end of a run, on a tiny project that fails in its own way."""

import subprocess
import sys
from pathlib import Path

from tests.run_summary import MAX_FLAKES, skipped_groups

ROOT = Path(__file__).resolve().parent.parent
FLAKY = """
import pathlib
import pytest

@pytest.mark.parametrize("number", range({flakes}))
def test_flaky(number):
    seen = pathlib.Path(__file__).with_name(f"seen {{number}}")
    if not seen.exists():
        seen.touch()
        raise AssertionError("the first time")

def test_sound():
    pass
"""
BROKEN = "def test_broken():\n    raise AssertionError('always')\n"
SKIPPED = "import pytest\ndef test_away():\n    pytest.skip('NOT TESTED behind nginx: it is not installed (apt-get install nginx)')\n"


def run(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text("from tests.run_summary import pytest_sessionfinish, pytest_terminal_summary\n")
    (folder / "test_tiny.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--reruns",
        "1",
        "-p",
        "no:schemathesis",
        "-p",
        "no:hypothesispytest",
        *arguments,
    ]
    done = subprocess.run(
        command,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_few_flaky_tests_are_shown_with_their_errors_and_the_run_is_green(tmp_path: Path) -> None:
    code, out = run(tmp_path, FLAKY.format(flakes=MAX_FLAKES) + SKIPPED, "-n", "2")
    assert code == 0, out
    assert out.count("FLAKY test_tiny.py::test_flaky[") == 2 * MAX_FLAKES
    assert out.count("AssertionError: the first time") >= MAX_FLAKES
    assert "FLAKY test_tiny.py::test_sound" not in out
    assert "NOT TESTED here: behind nginx 1 (apt-get install nginx)" in out.splitlines()


def test_more_flaky_tests_fail_the_run(tmp_path: Path) -> None:
    code, out = run(tmp_path, FLAKY.format(flakes=MAX_FLAKES + 1))
    assert code == 1, out
    assert out.count("FLAKY ") == 2 * (MAX_FLAKES + 1)


def test_a_test_that_fails_twice_is_not_flaky(tmp_path: Path) -> None:
    code, out = run(tmp_path, FLAKY.format(flakes=1) + BROKEN)
    assert code == 1
    assert "FAILED test_tiny.py::test_broken" in out
    assert "FLAKY test_tiny.py::test_broken" not in out
    assert "FLAKY test_tiny.py::test_flaky[0]" in out


def test_skipped_groups_are_counted_and_others_left_out() -> None:
    reasons = ["NOT TESTED in a browser: no Chromium (apt-get install chromium)"] * 2 + [
        "SQLite has one writer",
        "NOT TESTED with systemd",
    ]
    assert skipped_groups(reasons) == "NOT TESTED here: in a browser 2 (apt-get install chromium), with systemd 1"
    assert skipped_groups(["SQLite has one writer"]) == ""
