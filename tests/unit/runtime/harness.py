"""A worker without walls for tests of the runtime: a fork, a socket pair and a minimal parent."""

import atexit
import functools
import json
import os
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.ready import LASTING_CHILDREN, LASTING_DESCRIPTORS

from lodger.sandbox import frames
from lodger.sandbox.limits import Limits

#: Sizes of the limits (JSON) and files of a script that begins; the exit code of one that has ended.
JOB, STATUS = struct.Struct("=II"), struct.Struct("=i")
Answer = Callable[[str, Any], tuple[bool, Any]]


class Forks:
    """A process that has prepared a runtime (:mod:`tests.unit.runtime.forks`) and forks a worker for each script.

    A fork of the tests' own process, which has collected thousands of them, takes ten times as long.
    """

    def __init__(self, kind: str, without: str) -> None:
        self._line, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.unit.runtime.forks", kind, without, str(theirs.fileno())],
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], cwd=Path(__file__).parents[3],
            )  # fmt: skip
        LASTING_CHILDREN.add(str(process.pid))
        LASTING_DESCRIPTORS.add(str(self._line.fileno()))
        atexit.register(process.wait)
        atexit.register(self._line.close)

    def begin(self, end: socket.socket, numbers: dict[str, int], wire: bytes) -> None:
        """Let a worker run a script and talk through a socket."""
        text = json.dumps(numbers).encode()
        socket.send_fds(self._line, [JOB.pack(len(text), len(wire))], [end.fileno()])
        self._line.sendall(text + wire)

    def ended(self) -> int:
        """Wait for the end of the worker, and return its exit code, negative for a signal."""
        (status,) = STATUS.unpack(read_exactly(self._line, STATUS.size))
        return int(status)


@functools.cache
def prepared(kind: str = "quickjs", without: str = "") -> Forks:
    """Return a runtime with one example capability, without one of its parts: ``reseed`` or ``warm-up``."""
    return Forks(kind, without)


class SocketChannel:
    """The worker's end of the socket, as in the protocol of lodger.sandbox.runtime."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, kind: int, payload: bytes) -> None:
        self._end.sendall(frames.HEAD.pack(len(payload), kind) + payload)

    def answer(self, kind: int, payload: bytes) -> None:
        self.send(kind, payload)

    def receive(self) -> tuple[int, bytes]:
        size, kind = frames.HEAD.unpack(read_exactly(self._end, frames.HEAD.size))
        return kind, read_exactly(self._end, size)

    def wait(self, timeout_ms: int) -> bool:
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        return bool(poll.poll(timeout_ms))


def read_exactly(end: socket.socket, count: int) -> bytes:
    """Read so many bytes; raises EOFError."""
    parts = []
    while count:
        part = end.recv(count)
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


@dataclass
class Reports:
    """All frames of a worker."""

    outcome: str = ""
    text: str = ""
    logs: list[tuple[str, str]] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    dropped: int = 0
    status: int = 0

    @property
    def result(self) -> Any:
        assert self.outcome == "ok", f"{self.outcome}: {self.text}"
        return json.loads(self.text)

    @property
    def error(self) -> dict[str, Any]:
        assert self.outcome not in {"ok", ""}, f"no error but {self.text} (exit {self.status})"
        found = json.loads(self.text)
        assert {"name", "message", "stack", "file", "line", "column"} <= set(found)
        return found

    @property
    def lines(self) -> list[str]:
        return [text for _, text in self.logs]


def bundle(modules: str | Mapping[str, str | bytes], context: str) -> bytes:
    """Return files and context in the form in which a worker gets them."""
    named = {"main.js": modules} if isinstance(modules, str | bytes) else modules
    wire = b""
    for name, text in {"": context, **named}.items():
        source = text.encode() if isinstance(text, str) else text
        wire += frames.BUNDLE_PART.pack(len(name.encode()), len(source)) + name.encode() + source
    return wire


def run(
    runtime: Forks,
    modules: Any,
    *,
    context: Any = None,
    answer: Answer | None = None,
    now_us: int = 0,
    **limits: int,
) -> Reports:
    """Run a script in a forked worker, and return its frames."""
    ours, theirs = socket.socketpair()
    numbers = dict.fromkeys(frames.HEADER_FIELDS, 0) | asdict(Limits(**limits)) | {"now_us": now_us}
    numbers |= dict(zip(frames.SEED_FIELDS, frames.SEED.unpack(os.urandom(frames.SEED.size)), strict=True))
    wire = bundle(modules, json.dumps(context or {}))
    runtime.begin(theirs, numbers, wire)
    theirs.close()
    reported = Reports()
    try:
        collect_frames(
            ours, reported, answer or (lambda name, arguments: (True, {"name": name, "arguments": arguments}))
        )
    finally:
        ours.close()
        reported.status = runtime.ended()
    return reported


def collect_frames(end: socket.socket, reported: Reports, answer: Answer) -> None:
    """Read the frames of a worker until it ends, and answer its calls."""
    end.settimeout(120)
    while True:
        try:
            size, kind = frames.HEAD.unpack(read_exactly(end, frames.HEAD.size))
            payload = read_exactly(end, size)
        except EOFError:
            return
        assert not reported.outcome, "nothing may follow the answer"
        if kind == frames.LOG:
            reported.logs.append((frames.LEVELS[payload[0]], payload[1:].decode()))
        elif kind == frames.DROPPED:
            reported.dropped = frames.CALL_ID.unpack(payload)[0]
        elif kind == frames.DONE:
            reported.outcome, reported.text = "ok", payload.decode()
        elif kind == frames.FAIL:
            reported.outcome, reported.text = payload[1 : 1 + payload[0]].decode(), payload[1 + payload[0] :].decode()
        elif kind == frames.CALL:
            name = payload[5 : 5 + payload[4]].decode()
            arguments = json.loads(payload[5 + payload[4] :])
            reported.calls.append((name, arguments))
            ok, value = answer(name, arguments)
            reply = payload[:4] + bytes((ok,)) + json.dumps(value).encode()
            end.sendall(frames.HEAD.pack(len(reply), frames.REPLY) + reply)
        elif kind != frames.TRACE:
            raise AssertionError(f"frame {kind}")
