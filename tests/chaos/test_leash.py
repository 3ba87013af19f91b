"""Child processes end when the test's process is killed."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from tests.chaos import leash

ROOT = Path(__file__).resolve().parents[2]
#: Starts an endless child, prints its process id, and waits to be killed.
_PARENT = """
import subprocess, sys, time
from tests.chaos import leash
command = ["-c", "print('up', flush=True); import signal; signal.pause()"]
child = subprocess.Popen(leash.python(*command) if sys.argv[1] == "leashed" else [sys.executable, *command], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(1000)
"""


def ends(how: str, patience_s: float) -> bool:
    """Kill a parent and return whether its child ends too; the child is killed in any case."""
    parent = subprocess.Popen([sys.executable, "-c", _PARENT, how], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
    finally:
        parent.kill()
        parent.communicate()
    try:
        return bool(select.select([child], [], [], patience_s)[0])
    finally:
        if not select.select([child], [], [], 0)[0]:
            signal.pidfd_send_signal(child, signal.SIGKILL)
            select.select([child], [], [], 60)
        os.close(child)


def test_a_child_on_a_leash_ends_with_whoever_started_it() -> None:
    assert ends("leashed", 60)


def test_without_it_would_live_on() -> None:
    assert not ends("loose", 0.2)


def test_it_is_the_same_process() -> None:
    child = subprocess.Popen(leash.python("-c", "import os; print(os.getpid())"), stdout=subprocess.PIPE, text=True)
    assert int(child.communicate()[0]) == child.pid
    assert child.returncode == 0
