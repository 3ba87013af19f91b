"""How long a trivial job takes in a warm worker, without sockets and walls: runtime ``quickjs`` beside native QuickJS.

    python bench/developer/realm.py [ATTEMPTS]

Each attempt is one fork of this process. Timed is what lies between the bundle's arrival and the answer: bundle to DONE frame.
"""

import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from lodger.sandbox import frames
from lodger.sandbox.frames import HEADER_FIELDS
from lodger.sandbox.limits import Limits
from lodger.sandbox.runtimes.js.artefact import ensure
from lodger.sandbox.runtimes.quickjs import Runtime

TRIVIAL = "export default () => { let n = 0; for (let i = 0; i < 1000; i++) n += i; return 'sum ' + structuredClone({ n }).n }"
NATIVE = "(() => { let n = 0; for (let i = 0; i < 1000; i++) n += i; return 'sum ' + n })()"
LIMITS = dict.fromkeys(HEADER_FIELDS, 0) | asdict(Limits())
FIGURES = struct.Struct("<qq")


class Evaluates(Protocol):
    """What is used of native QuickJS."""

    def eval(self, source: str) -> object:
        """Evaluate a script."""
        ...


class Nowhere:
    """A channel that keeps the answer."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def send(self, kind: int, payload: bytes) -> None:
        self.sent.append(kind)

    def answer(self, kind: int, payload: bytes) -> None:
        self.sent.append(kind)

    def receive(self) -> tuple[int, bytes]:
        raise AssertionError("nothing is asked")

    def wait(self, timeout_ms: int) -> bool:
        raise AssertionError("nothing is waited for")


def forked(work: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    """Run in a fork and give two figures, nanoseconds."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(writing, FIGURES.pack(*work()))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    found = os.read(reading, FIGURES.size)
    os.close(reading)
    os.waitpid(pid, 0)
    warm, job = FIGURES.unpack(found)
    return warm, job


def guest_attempt(runtime: Runtime, wire: bytes) -> tuple[int, int]:
    """Make a realm ready, then run the job in it."""
    start = time.perf_counter_ns()
    realm = runtime.fresh()
    realm.bound(LIMITS)
    ready = time.perf_counter_ns()
    channel = Nowhere()
    realm.run(wire, channel)
    end = time.perf_counter_ns()
    assert channel.sent == [frames.DONE]
    return ready - start, end - ready


def native_attempt(context: Evaluates) -> tuple[int, int]:
    """The same job in native QuickJS, the context made before the fork."""
    start = time.perf_counter_ns()
    context.eval("1")
    ready = time.perf_counter_ns()
    context.eval(NATIVE)
    return ready - start, time.perf_counter_ns() - ready


def show(name: str, figures: list[int]) -> None:
    """Print percentiles in milliseconds."""
    figures.sort()
    p50, p99 = (figures[int(len(figures) * part)] / 1e6 for part in (0.50, 0.99))
    print(f"{name:34} p50 {p50:7.3f} ms   p99 {p99:7.3f} ms")


def main() -> None:
    """Measure and print."""
    attempts = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    wire = b"".join(
        frames.BUNDLE_PART.pack(len(name), len(text)) + name + text
        for name, text in ((b"", b"{}"), (b"main.js", TRIVIAL.encode()))
    )
    runtime = Runtime()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        artefact = ensure(Path(folder))
        baked = time.perf_counter()
        runtime.prepare(artefact.settings())
        print(f"bake {baked - start:.2f} s, prepare {(time.perf_counter() - baked) * 1000:.1f} ms")
    rounds = [forked(lambda: guest_attempt(runtime, wire)) for _ in range(attempts)]
    show("quickjs: fresh + bound in the fork", [warm for warm, _ in rounds])
    show("quickjs: job in a warm worker", [job for _, job in rounds])
    try:
        from quickjs import Context
    except ImportError:
        print("native quickjs is not installed")
        return
    context = Context()
    rounds = [forked(lambda: native_attempt(context)) for _ in range(attempts)]
    show("native: job in a warm worker", [job for _, job in rounds])


if __name__ == "__main__":
    main()
