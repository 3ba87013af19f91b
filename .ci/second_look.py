"""Runs failed tests once more, each alone in a process of its own, after all others have ended.

A test that fails twice is broken. One that passes alone is flaky: a fault to be mended, in the test or in the product. It is listed in the
output and in a file. More than ``MAX_FLAKES`` flaky tests fail the run.

A run that was interrupted, could not collect its tests, lost a test process or failed in pytest itself fails at once.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

MAX_FLAKES = 3
MAX_LOOKS = 20
_FAILED = 1  # pytest's exit code for: everything ran, and tests failed


def look(python: Path | str, folder: Path, arguments: list[str], kept: Path) -> int:
    """Run pytest in ``folder`` and return the exit code of the whole, 0 for success. ``kept`` is the file that lists flaky tests."""
    kept.unlink(missing_ok=True)
    code, seen = _pytest(python, folder, arguments)
    failed: dict[str, str] = seen["failed"]
    if code == 0 and not failed and not seen["broken"]:
        return 0
    if code != _FAILED or seen["broken"] or not failed:
        return _red(kept, failed, "no second look: " + ("; ".join(seen["broken"]) or f"pytest ended with {code}"), code)
    if len(failed) > MAX_LOOKS:
        return _red(kept, failed, f"no second look: {len(failed)} tests failed, more than {MAX_LOOKS}", code)
    alone, twice = [], []
    for name in failed:
        again, second = _pytest(python, folder, ["-p", "no:cacheprovider", "-q", name])
        passed = again == 0 and name in second["passed"] and not second["failed"] and not second["broken"]
        (alone if passed else twice).append(name)
    text = _table(alone, twice)
    print(text, flush=True)
    kept.write_text(text + "".join(f"\n\n=== {name}: what was seen first\n{failed[name]}" for name in failed) + "\n")
    return _FAILED if twice or len(alone) > MAX_FLAKES else 0


def _table(alone: list[str], twice: list[str]) -> str:
    rows = [
        _title(f"failed beside others, passed alone: {len(alone)} (green up to {MAX_FLAKES})"),
        *(f"FLAKED {n}" for n in alone),
    ]
    rows += [_title(f"failed twice: {len(twice)} (green only with none)"), *(f"FAILED {n}" for n in twice)]
    verdict = "red" if twice or len(alone) > MAX_FLAKES else "green, and each flake above is a fault to be mended"
    return "\n".join([*rows, _title(verdict)])


def _red(kept: Path, failed: dict[str, str], why: str, code: int) -> int:
    text = "\n".join([_title(why), *(f"FAILED {name}" for name in failed), _title("red")])
    print(text, flush=True)
    kept.write_text(text + "\n")
    return code or _FAILED


def _title(words: str) -> str:
    return f" {words} ".center(100, "=")


def _pytest(python: Path | str, folder: Path, arguments: list[str]) -> tuple[int, dict[str, Any]]:
    """Run pytest with a recorder. A missing record counts as a broken run."""
    with tempfile.TemporaryDirectory(prefix="second-look-") as place:
        record = Path(place) / "record.json"
        command = [str(python), str(Path(__file__).resolve()), str(record), *arguments]
        print("·", " ".join(["pytest", *arguments]), flush=True)
        code = subprocess.call(command, cwd=folder)
        if not record.exists():
            return code, {"failed": {}, "passed": [], "broken": ["pytest ended without a record"]}
        return code, json.loads(record.read_text())


class Recorder:
    """A pytest plugin of the reporting process: records passed and failed tests and what broke the run."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._failed: dict[str, str] = {}
        self._passed: list[str] = []
        self._broken: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:  # noqa: ANN401 - pytest's own, which only the environment has
        """Record how a phase of a test ended; xdist reports a lost process as a phase without a name."""
        if report.failed:
            if report.when not in {"setup", "call", "teardown"}:
                self._broken.append(f"a test process was lost in {report.nodeid}")
            shown = "\n".join([f"[{report.when}]", report.longreprtext, *(f"--- {a}\n{b}" for a, b in report.sections)])
            self._failed[report.nodeid] = self._failed.get(report.nodeid, "") + shown
        elif report.passed and report.when == "call":
            self._passed.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:  # noqa: ANN401 - as above
        """Record what could not be collected."""
        if report.failed:
            self._broken.append(f"{report.nodeid or 'the folder'} cannot be collected")

    def pytest_keyboard_interrupt(self) -> None:
        """Record that the run was interrupted."""
        self._broken.append("interrupted")

    def pytest_internalerror(self) -> None:
        """Record that pytest itself failed."""
        self._broken.append("pytest failed in itself")

    def write(self) -> None:
        """Write the record."""
        self._record.write_text(json.dumps({"failed": self._failed, "passed": self._passed, "broken": self._broken}))


def _record(path: Path, arguments: list[str]) -> int:
    import pytest

    recorder = Recorder(path)
    code = int(pytest.main(arguments, plugins=[recorder]))
    recorder.write()
    return code


if __name__ == "__main__":
    sys.exit(_record(Path(sys.argv[1]), sys.argv[2:]))
