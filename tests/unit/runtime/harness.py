"""A worker without walls for tests of the runtime: a fork, a socket pair and a minimal parent."""

import atexit
import functools
import json
import os
import resource
import select
import shutil
import socket
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lodger.sandbox import frames
from lodger.sandbox.limits import Limits
from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.runtimes.libwasmtime import STACK_BYTES
from lodger.sandbox.runtimes.quickjs import Runtime
from lodger.sandbox.runtimes.quickjs_native import Runtime as NativeRuntime
from lodger.sandbox.runtimes.settings import native_settings

CAPABILITY = """
$.provide("echo", (context, call) => ({
  ask: (value) => call("echo.ask", { value }),
  now: (value) => $.callSync("echo.now", { value }),
  plan: context.plan,
}));
"""

Answer = Callable[[str, Any], tuple[bool, Any]]


@functools.cache
def prepared() -> Runtime:
    """Return a runtime with one example capability; its realm is in the cache, as that of any engine is."""
    resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, resource.getrlimit(resource.RLIMIT_STACK)[1]))  # a worker's
    runtime = Runtime()
    sources = [(name, text) for name, text in artefact.read_sources() if not name.startswith("cap-")]
    runtime.prepare(artefact.baked([*sources, ("cap-echo.js", CAPABILITY)]).settings())
    return runtime


@functools.cache
def prepared_native() -> NativeRuntime:
    """Return the same for runtime ``quickjs-native``."""
    folder = Path(tempfile.mkdtemp(prefix="lodger-native-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    capability = folder / "cap-echo.js"
    capability.write_text(CAPABILITY)
    runtime = NativeRuntime()
    settings = native_settings()
    files = [path for path in settings["library"].split("\n") if not Path(path).name.startswith("cap-")]
    runtime.prepare(settings | {"library": "\n".join([*files, str(capability)])})
    return runtime


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
    runtime: Runtime | NativeRuntime,
    modules: Any,
    *,
    context: Any = None,
    answer: Answer | None = None,
    now_us: int = 0,
    before: Callable[[], None] | None = None,
    **limits: int,
) -> Reports:
    """Run a script in a worker forked from this process, and return its frames."""
    ours, theirs = socket.socketpair()
    numbers = dict.fromkeys(frames.HEADER_FIELDS, 0) | asdict(Limits(**limits)) | {"now_us": now_us}
    numbers |= dict(zip(frames.SEED_FIELDS, frames.SEED.unpack(os.urandom(frames.SEED.size)), strict=True))
    wire = bundle(modules, json.dumps(context or {}))
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # forking beside pytest-timeout's thread: the child touches neither
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ours.close()
            max_s = numbers["cpu_ms"] // 1000 + 2  # without walls, this ends endless scripts
            resource.setrlimit(resource.RLIMIT_CPU, (max_s, max_s))
            if before is not None:
                before()
            realm = runtime.fresh()
            realm.bound(numbers)
            realm.run(wire, SocketChannel(theirs))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    theirs.close()
    reported = Reports()
    try:
        collect_frames(
            ours, reported, answer or (lambda name, arguments: (True, {"name": name, "arguments": arguments}))
        )
    finally:
        ours.close()
        reported.status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
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
