"""Invariants after every case: the host is unchanged, the verdict is valid, no text leaks, no process is left."""

import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import lodger.sandbox
import lodger.stdlib
from lodger.engine.core.settings import load
from lodger.escape.evidence import LEAKS, Trial
from lodger.escape.switchboard import SECRET_NAME
from lodger.sandbox.outcome import Blame, Outcome
from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.runtimes.js.artefact import find_library
from lodger.sandbox.walls.identity import UIDS_PER_ZYGOTE


class Canaries:
    """Canaries on the host that no attack may touch: a file, a secret, two listening sockets, resources of this process."""

    def __init__(self) -> None:
        self.secret = "canary-" + secrets.token_hex(12)
        self.folder = Path(tempfile.mkdtemp(prefix="lodger-escape-"))
        self._file = self.folder / "secret.txt"
        self._file.write_text(self.secret)
        self._file.chmod(0o644)
        self.folder.chmod(0o755)
        self._before = self._file.stat()
        os.environ[SECRET_NAME] = self.secret
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._tcp.setblocking(False)
        self._abstract = socket.socket(socket.AF_UNIX)
        self._abstract.bind(f"\0{self.secret}")
        self._abstract.listen()
        self._abstract.setblocking(False)
        self._uids = range(os.geteuid(), os.geteuid() + 1)
        self._own = _belongings(self._uids)

    @property
    def path(self) -> str:
        """Path of the canary file, for cases that try to read it."""
        return str(self._file)

    @property
    def port(self) -> int:
        """Number of the canary TCP port."""
        port: int = self._tcp.getsockname()[1]
        return port

    def fill_in(self, text: str) -> str:
        """Return an attack's text with the placeholders for path and port replaced."""
        return text.replace("CANARY_PATH", self.path).replace("CANARY_PORT", str(self.port))

    def record_reference(self, worker_uids: range) -> None:
        """Record the current resources of this process, and the user ids of workers, as the reference."""
        self._uids = worker_uids
        self._own = _belongings(worker_uids)

    def changes(self) -> list[str]:
        """Return what was changed since the reference, in words."""
        found = []
        after = self._file.stat()
        if self._file.read_text() != self.secret or (after.st_mtime_ns, after.st_mode, after.st_uid) != (
            self._before.st_mtime_ns,
            self._before.st_mode,
            self._before.st_uid,
        ):
            found.append("the canary file was changed")
        if [path.name for path in self.folder.iterdir()] != ["secret.txt"]:
            found.append("a file was left beside the canary")
        if os.environ.get(SECRET_NAME) != self.secret:
            found.append("the environment was changed")
        if self.visited():
            found.append("the TCP canary was connected to")
        if _accepted(self._abstract):
            found.append("the abstract canary was connected to")
        now = _belongings(self._uids)
        found += [
            f"{what}: {self._own[what]} before, {now[what]} after" for what in now if now[what] != self._own[what]
        ]
        return found

    def visited(self) -> bool:
        """Return whether there was a connection to the TCP canary since the last call."""
        return _accepted(self._tcp)

    def close(self) -> None:
        """Remove the canaries; safe to call twice."""
        self._tcp.close()
        self._abstract.close()
        os.environ.pop(SECRET_NAME, None)
        shutil.rmtree(self.folder, ignore_errors=True)


def _accepted(listening: socket.socket) -> bool:
    """Whether a socket had a connection to accept."""
    try:
        listening.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _belongings(worker_uids: range) -> dict[str, str]:
    """Count the engine's open files, children and other resources by kind."""
    kinds: Counter[str] = Counter()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names only
        try:
            kinds[os.readlink(f"/proc/self/fd/{name}").partition(":[")[0]] += 1  # noqa: PTH115 - not a path
        except OSError:
            continue
    own = {
        "descriptors": " ".join(f"{kind}×{count}" for kind, count in sorted(kinds.items()) if "/proc/" not in kind),
        "working folder": os.getcwd(),  # noqa: PTH109 - as the kernel has it
    }
    if os.geteuid() not in worker_uids:  # otherwise they may belong to other programs of this user
        own["shared memory of a worker"] = " ".join(files_owned_by(Path("/dev/shm"), worker_uids))  # noqa: S108 - looked at only
        for kind in ("shm", "sem", "msg"):
            own[f"System V {kind} of a worker"] = str(_rows(Path("/proc/sysvipc") / kind, worker_uids))
    return own


def files_owned_by(folder: Path, uids: range) -> list[str]:
    """Return the sorted names in a folder that these user ids own; empty if there is no such folder."""
    if not folder.is_dir():
        return []
    owned = []
    for path in folder.iterdir():
        # Other programs may delete their files at any time.
        with suppress(FileNotFoundError):
            if path.lstat().st_uid in uids:
                owned.append(path.name)
    return sorted(owned)


def _rows(table: Path, uids: range) -> int:
    """Count the rows of a table of the kernel whose owner or creator is one of these user ids."""
    if not table.exists():
        return 0
    head, *rows = (line.split() for line in table.read_text().splitlines())
    columns = [head.index(name) for name in ("uid", "cuid")]
    return sum(any(int(row[column]) in uids for column in columns) for row in rows)


@cache
def host_paths() -> tuple[str, ...]:
    """Return paths of this host that no script may know: interpreter, packages, cache; without short ones."""
    paths = {
        Path(sys.executable),
        Path(lodger.sandbox.__file__).parent,
        Path(lodger.stdlib.__file__).parent,
        find_library(),
    }
    paths |= {path.resolve() for path in paths} | set(artefact.candidates(load().cache_dir))
    return tuple(sorted({str(path) for path in paths if len(path.parts) > 2}))


def leaks(trial: Trial, secret: str) -> list[str]:
    """Return the leaks of the host in texts that a script or its author reads, in words.

    The result is written by the script and is only searched for the secret and paths of this host.
    """
    found = []
    for report in trial.reports:
        error = report.error
        texts = {"the result": report.result or "", "a log line": "\n".join(line.text for line in report.logs)}
        if error is not None:
            texts["the error"] = f"{error.name}\n{error.message}\n{error.stack}\n{error.file}"
        for where, text in texts.items():
            if secret in text:
                found.append(f"{where} contains the host's secret")
            found += [f"{where} contains a path of the host: {path}" for path in host_paths() if path in text]
            leak = LEAKS.search(text)
            if leak is not None and where != "the result":
                found.append(
                    f"{where} contains {leak.group()!r}: {text[max(0, leak.start() - 60) : leak.end() + 60]!r}"
                )
    return found


def verdict(trial: Trial) -> list[str]:
    """Return the errors in the form of the verdicts, in words."""
    found = []
    for report in trial.reports:
        if not isinstance(report.outcome, Outcome):
            found.append("the outcome is not documented")
        elif report.outcome.blames is Blame.ENGINE:
            found.append(f"a fault of the script was reported as the engine's: {report.outcome}")
        if (report.outcome is Outcome.OK) is (report.error is not None):
            found.append("only an outcome other than ok may have an error")
        if report.outcome is not Outcome.OK and report.result is not None:
            found.append("an outcome other than ok has a result")
    return found


def resident_bytes() -> int:
    """Return this process's resident memory."""
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - read after every case
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def remaining_processes(pids: tuple[int, ...], patience_s: float = 2.0) -> str:
    """Return which processes still exist after a time, in words; "" if none."""
    deadline = time.monotonic() + patience_s
    while left := [pid for pid in pids if Path(f"/proc/{pid}").exists() and _state(pid) != "Z"]:
        if time.monotonic() > deadline:
            return f"processes {left} are left"
        time.sleep(0.005)
    return ""


def page_table_bytes(pid: int) -> int:
    """Return the size of a process's page tables, 0 if it ended."""
    try:
        return int(status_of(pid).get("VmPTE", "0").split()[0]) * 1024
    except OSError:
        return 0


def status_of(pid: "int | str") -> dict[str, str]:
    """Return the fields of a process's status file by name. Raises OSError."""
    rows = (line.partition(":")[::2] for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {name: value.strip() for name, value in rows}


def children(pid: int) -> tuple[int, ...]:
    """Return the child processes of a process."""
    try:
        return tuple(int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except OSError:
        return ()


def uids_of(pid: int, walls: Mapping[str, bool]) -> range:
    """Return the user ids of all workers of the zygote that a process belongs to.

    Args:
        pid: process id of the zygote or of a worker.
        walls: maps each wall's name to whether it is active.
    """
    uid = int(status_of(pid)["Uid"].split()[0])
    if not walls.get("uid"):
        return range(uid, uid + 1)
    first = uid - uid % UIDS_PER_ZYGOTE
    return range(first, first + UIDS_PER_ZYGOTE)


def _state(pid: int) -> str:
    """Return the state letter of a process in /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
