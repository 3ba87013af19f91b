"""Node processes, ``lodger up --role node``, and their workers."""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.e2e.ready import CLI, Ready

from lodger.engine.core.clock import SystemClock

ROOT = Path(__file__).resolve().parents[2]


class Node:
    """A node process with its log file."""

    def __init__(self, name: str, url: str, folder: Path, **settings: str) -> None:
        self.name, self._url, self._settings = name, url, settings
        self._log = folder / f"{name}.log"
        self._process: Ready | None = None
        self.frozen = False
        self._clock = SystemClock()
        self._began_s = 0.0

    def start(self) -> None:
        """Start the process; it registers in the ledger when it is up."""
        bare = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
        self._began_s = self._clock.elapsed_s()
        arguments = [
            "up",
            "--role",
            "node",
            "--name",
            self.name,
            "--expose",
            "tests.chaos.exposed_lamps:expose",
            "--db",
            self._url,
        ]
        with self._log.open("ab") as log, open(os.devnull) as nothing:
            streams = (nothing.fileno(), log.fileno(), log.fileno())
            self._process = Ready(
                CLI, [*arguments, "--json"], streams, bare | {"PYTHONPATH": str(ROOT)} | self._settings
            )

    @property
    def pid(self) -> int:
        """Process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def up(self) -> bool:
        """Whether the process was started and not stopped."""
        return self._process is not None

    @property
    def young(self) -> bool:
        """Whether the process may still be starting."""
        return self._clock.elapsed_s() - self._began_s < 60

    def ended(self) -> str | None:
        """Return the end of the log if the process ended by itself, which is an error; otherwise None."""
        if self._process is None or self._process.poll() is None:
            return None
        return f"{self.name} ended with {self._process.returncode}: {self.words()}"

    def words(self) -> str:
        """Return the end of the node's log."""
        return self._log.read_text(errors="replace")[-3000:] if self._log.exists() else ""

    def about(self, sign: str) -> list[str]:
        """Return the lines of the node's log that contain a text."""
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return [line for line in text.splitlines() if sign in line]

    def kill(self) -> None:
        """Kill the process with SIGKILL; safe to call twice."""
        process, self._process, self.frozen = self._process, None, False
        if process is not None:
            with process:
                process.kill()
                process.wait()

    def stop(self) -> int:
        """Stop the process with SIGTERM and return its exit code."""
        process, self._process = self._process, None
        assert process is not None
        with process:
            process.terminate()
            return process.wait(60)

    def freeze(self) -> None:
        """Suspend the process."""
        self.frozen = True
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the process."""
        self.frozen = False
        if self._process is not None:
            os.kill(self.pid, signal.SIGCONT)

    def zygotes(self) -> list[int]:
        """Return its descendants that have children, nearest first."""
        return [pid for pid in _below(self.pid) if children(pid)]

    def workers(self) -> list[int]:
        """Return its descendants that have no children."""
        return [pid for pid in _below(self.pid) if not children(pid)]


def children(pid: int) -> list[int]:
    """Return the children of a process; empty if it ended."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def _below(pid: int) -> Iterator[int]:
    """Yield all descendants of a process."""
    for child in children(pid):
        yield child
        yield from _below(child)


def pause(seconds: float) -> None:
    """Sleep while other processes run."""
    select.select([], [], [], seconds)


def cpu_ticks(pid: int) -> int:
    """Return the CPU time of a process in clock ticks; 0 if it ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def slay(pid: int) -> bool:
    """Kill a process that a node of this test started; return whether it existed."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False
