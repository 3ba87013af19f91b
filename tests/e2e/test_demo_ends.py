"""How a demo ends that is not left alone: the terminal's window closes, the disk fills while it runs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.e2e.command import ROOT
from tests.e2e.ready import lodger


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [each for child in map(int, found) for each in (child, *_children(child))]


@pytest.mark.parametrize("number", [signal.SIGHUP])  # SIGINT: test_demo.py; SIGTERM: test_service.py
def test_no_process_and_no_folder_is_left(number: signal.Signals, tmp_path: Path) -> None:
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env |= {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "lodger.engine.cli", "demo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("ran "):
                break
        below = _children(demo.pid)
        assert len(below) > 2
        demo.send_signal(number)
        said = demo.stdout.read()
        assert demo.wait(60) == 0
    assert "The ledger after" in said
    ends = time.monotonic() + 60  # they have ended; the process that inherits them has to reap them
    while (left := [pid for pid in below if Path(f"/proc/{pid}").exists()]) and time.monotonic() < ends:
        time.sleep(0.01)
    assert left == []
    assert list(tmp_path.glob("lodger-demo-*")) == []


def test_a_disk_that_fills_while_it_runs_is_told_in_words(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "small", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("NOT TESTED as root: this user may not mount a small file system (run as root)")
    try:
        said = lodger("demo", "--for", "4s", "--keep", cwd=tmp_path)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert "the disk is full" in said.out + said.err
    assert "Traceback" not in said.out + said.err
