"""Runs tests/escape/standing_pool.py as root or as an ordinary user, and reads the state of its processes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.escape.probing import PROBE

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("standing_pool.py")
OVERFLOW_UID = 65534


@cache
def ordinary_python() -> str | None:
    """Return the path of an interpreter that an ordinary user may execute, None if there is none."""
    folders = [*os.get_exec_path(), "/usr/local/bin", "/usr/bin"]
    names = ("python3", "python3.13", "python3.12", "python3.11")
    test = f"import sys, ctypes, wasmtime; open({str(SCRIPT)!r}).close(); sys.exit(sys.version_info < (3, 11))"
    for candidate in dict.fromkeys((sys.executable, *(f"{folder}/{name}" for folder in folders for name in names))):
        try:
            done = subprocess.run(
                [candidate, "-c", test], user=OVERFLOW_UID, group=OVERFLOW_UID, extra_groups=[], capture_output=True
            )
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    return None


@contextmanager
def standing(
    user: str, without: str = "", code: str | None = None, under: tuple[str, ...] = ()
) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    """Yield the report of the process; ``user`` is root, ordinary or own; ``under`` is a command that runs it."""
    if user in ("root", "ordinary") and os.geteuid() != 0:
        pytest.skip("NOT TESTED as root: needs root to choose the user (run as root)")
    python: str = sys.executable
    identity: dict[str, Any] = {}
    if user == "ordinary":
        if (python := ordinary_python() or "") == "":
            pytest.skip(
                "NOT TESTED as an ordinary user: none may execute a Python 3.11+ with wasmtime here and read these tests"
            )
        identity = {"user": OVERFLOW_UID, "group": OVERFLOW_UID, "extra_groups": []}
    settings = json.dumps({"runtime_path": PROBE, "without": without})
    command = [*under, python, "-B", str(SCRIPT), str(ROOT), settings, *([code] if code else [])]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", env={}, **identity
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, "the pool did not come up"
        yield json.loads(line), process
    finally:
        process.stdin.close()
        process.wait(120)
        process.stdout.close()


def status(pid: int | str) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def limits(pid: int) -> dict[str, tuple[str, str]]:
    rows = Path(f"/proc/{pid}/limits").read_text().splitlines()[1:]
    return {row[:26].strip(): (row[26:47].strip(), row[47:68].strip()) for row in rows}


def session(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[3])


def descriptors(pid: int) -> list[str]:
    return [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]


def namespace(pid: int | str, name: str) -> str:
    return os.readlink(f"/proc/{pid}/ns/{name}")
