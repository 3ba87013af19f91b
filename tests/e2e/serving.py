"""A running ``lodger up`` whose lines tests read as they come."""

import json
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any, TextIO

from tests.e2e.command import ROOT
from tests.e2e.ready import CLI, Ready


class Up:
    """A running service, its lines as they come."""

    def __init__(self, process: Ready, out: TextIO) -> None:
        self.process = process
        self.out = out
        self.lines: Queue[dict[str, Any] | None] = Queue()
        self.seen: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        """Queue each JSON line of the service, None after the last."""
        for line in self.out:
            if line.startswith("{"):
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the next line like that."""
        while True:
            try:
                line = self.lines.get(timeout=60)
            except Empty:
                raise AssertionError(f"it never came; before it: {self.seen}") from None
            assert line is not None, f"it ended; before that: {self.seen}"
            self.seen.append(line)
            if wanted(line):
                return line

    def kind(self, kind: str) -> dict[str, Any]:
        """Return the next line of this kind."""
        return self.until(lambda line: line.get("kind") == kind)

    def end(self) -> int:
        """Stop the service by SIGTERM; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        self._reader.join()
        return code


@contextmanager
def up(folder: Path, *arguments: str, **environment: str) -> Iterator[Up]:
    """Run ``lodger up`` for the block."""
    command = ["up", "--db", str(folder / "ledger.db"), "--json", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LODGER_API_PORT": "0", **environment}
    out, said = os.pipe()
    with os.fdopen(out, encoding="utf-8") as lines, open(os.devnull) as nothing:
        try:
            begun = Ready(CLI, command, (nothing.fileno(), said, 2), env, folder)
        finally:
            os.close(said)
        with begun:
            running = Up(begun, lines)
            try:
                yield running
            finally:
                running.end()


def read_until(descriptor: int, sign: str) -> str:
    """Read from a pipe or terminal until a text comes; return all that was read."""
    seen = b""
    while sign.encode() not in seen:
        assert select.select([descriptor], [], [], 60)[0], f"{sign!r} never came; the last was {seen[-300:]!r}"
        seen += os.read(descriptor, 65_536)
    return seen.decode("utf-8", "replace")
