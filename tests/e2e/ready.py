"""Processes that begin where importing has ended: forks of one that has imported Lodger and waits.

Importing is most of what a small command costs (0.7 of 1.0 CPU seconds), and setting up a ledger most of the rest: a ledger that is
not there yet begins as a copy of one (:mod:`tests.databases.template`). The suite starts hundreds. Each fork is a process of its
own: own environment, folder, arguments and streams; its threads and exit handlers end as in any other. What is about importing
itself, about migrations, about streams that are closed, or about a process's first and last moments takes a real one
(:mod:`tests.e2e.command`).
"""

import atexit
import ctypes
import gc
import io
import json
import logging
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Self

from tests.databases.template import TEMPLATE, copied_ledgers
from tests.e2e.command import ROOT, Said, bare

from lodger.engine.store.connection.database import Database

CLI = "lodger.engine.cli"
_PDEATHSIG = 1
#: The process that waits, and the descriptor that keeps it: they serve all tests, whichever needs them first.
LASTING_CHILDREN: set[str] = set()
LASTING_DESCRIPTORS: set[str] = set()
#: What ledger commands import one way or another.
IMPORTED = (
    "lodger.engine.cli.entry", "lodger.engine.cli.operations", "lodger.engine.service.operations.table", "lodger.engine.sync",
    "lodger.engine.store.migrations.upgrade", "sqlalchemy.dialects.sqlite",
)  # fmt: skip


def lodger(
    *arguments: str | Path, stdin: str | bytes = b"", cwd: Path | None = None, module: str = CLI, **env: str
) -> Said:
    """Run ``lodger``, or another module, as :func:`tests.e2e.command.lodger` does, without the time to import it."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    (take, write), (out, said), (err, wrong) = os.pipe(), os.pipe(), os.pipe()
    with os.fdopen(write, "wb") as sink, os.fdopen(out, "rb") as reported, os.fdopen(err, "rb") as errors:
        try:
            begun = Ready(module, arguments, (take, said, wrong), bare() | env, cwd)
        finally:
            for each in (take, said, wrong):
                os.close(each)
        with begun, ThreadPoolExecutor(3) as streams:
            streams.submit(_give, sink, given)
            texts = streams.submit(reported.read), streams.submit(errors.read)
            code = begun.wait(250)
            return Said(code, texts[0].result(250).decode(), texts[1].result(250).decode())


def _give(sink: io.BufferedWriter, given: bytes) -> None:
    """Write to a process's standard input and close it; the process may have ended."""
    try:
        sink.write(given)
        sink.close()
    except BrokenPipeError:  # it reads nothing
        pass


class Ready:
    """One process: ``python -m module arguments``; waited for and signalled as subprocess does it."""

    def __init__(
        self,
        module: str,
        arguments: Iterable[str | Path],
        streams: tuple[int, int, int],
        env: dict[str, str],
        cwd: Path | None = None,
    ) -> None:
        asked = {"module": module, "arguments": [str(each) for each in arguments], "env": env, "cwd": str(cwd or ROOT)}
        self.returncode: int | None = None
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.connect(waiting())
        socket.send_fds(self._line, [json.dumps(asked).encode()], streams)
        said, (self._handle,), _, _ = socket.recv_fds(self._line, 100, 1)
        self.pid = int(said)

    def poll(self, seconds: float = 0.0) -> int | None:
        """Return how it ended, as subprocess does; None if it has not."""
        if self.returncode is None and select.select([self._line], [], [], seconds)[0]:
            self.returncode = int(self._line.recv(100))
        return self.returncode

    def wait(self, seconds: float = 250.0) -> int:
        """Return how it ended, as subprocess does.

        Raises:
            subprocess.TimeoutExpired: it has not; it is killed.
        """
        code = self.poll(seconds)
        if code is None:
            self.send_signal(signal.SIGKILL)
            raise subprocess.TimeoutExpired(str(self.pid), seconds)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal; nothing when it has ended."""
        try:
            signal.pidfd_send_signal(self._handle, number)
        except ProcessLookupError:
            pass

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.send_signal(signal.SIGKILL)
        self._line.close()
        os.close(self._handle)


@cache
def waiting() -> str:
    """Return the socket of this test process's own; started at the first call, ended with its standard input."""
    place = tempfile.mkdtemp(prefix="lodger-ready-")
    path = os.path.join(place, "line")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.ready", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT,
        env=bare() | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    def end() -> None:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(20)
        shutil.rmtree(place)

    atexit.register(end)
    assert process.stdout is not None
    assert process.stdout.readline(), "it ended"
    process.stdout.close()
    assert process.stdin is not None
    LASTING_CHILDREN.add(str(process.pid))
    LASTING_DESCRIPTORS.add(str(process.stdin.fileno()))
    return path


# ---- the process that waits


def _wait(path: str) -> None:
    """Fork for each connection until standard input ends; only a fork returns."""
    for name in IMPORTED:
        import_module(name)
    folder = Path(path).parent
    with copied_ledgers(folder):
        if not (pid := os.fork()):  # the parent of the forks has opened nothing itself
            Database(f"sqlite:///{folder / TEMPLATE}").close()
            os._exit(0)
        os.waitpid(pid, 0)
        _meet(path)


def _end_with_parent() -> None:
    """Let the kernel kill this process, even a stopped one, when its parent ends: no test's process outlives the tests."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)


def _meet(path: str) -> None:
    """Listen at a socket and serve each connection in a fork, until standard input ends."""
    gc.collect()
    gc.freeze()
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.bind(path)
    line.listen(20)
    print("up", flush=True)  # noqa: T201 - the starting process waits for that
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while line in select.select([line, 0], [], [])[0]:
        met, _ = line.accept()
        if os.fork() == 0:
            line.close()
            _end_with_parent()
            return _serve(met)
        met.close()
        while _reaped():
            continue
    line.close()
    os._exit(0)


def _reaped() -> bool:
    """Collect one ended child; return whether there was one."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _serve(met: socket.socket) -> None:
    """Fork what is asked for, tell its number, then how it ended; the fork returns."""
    text, streams, _, _ = socket.recv_fds(met, 1_000_000, 3)
    asked = json.loads(text)
    pid = os.fork()
    if pid:
        for each in streams:
            os.close(each)
        handle = os.pidfd_open(pid)
        socket.send_fds(met, [str(pid).encode()], [handle])
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        try:
            met.send(str(code).encode())
        except OSError:  # the client has gone
            pass
        os._exit(0)
    _end_with_parent()
    met.close()
    for number, each in enumerate(streams):
        os.dup2(each, number)
    for each in streams:
        if each > 2:
            os.close(each)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    sys.stdin, sys.stdout = (
        os.fdopen(0, encoding="utf-8"),
        os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape"),
    )
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]  # as at the beginning
    sys.argv = [asked["module"], *asked["arguments"]]
    code: int | str = 1
    atexit.register(lambda: _leave(code))
    # What this registers is called before that: the newest first.
    try:
        runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code or 0
        raise


def _leave(code: int | str) -> None:
    """End as the interpreter does, but for taking a thousand modules apart, which was half of what a small command costs."""
    logging.shutdown()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    _wait(sys.argv[1])
