"""Compromised workers by the thousand: seeded streams of mutated frames, written to the parent's side of the socket.

``lodger bench frames`` sends a million. What must hold: a verdict for every stream that is armed, no exception, memory flat, and nothing
done any more for a worker once it is judged.
"""

import asyncio
import json
import os
import random
import socket
import time
from collections import Counter
from dataclasses import dataclass, field

from lodger.escape.invariants import resident_bytes
from lodger.escape.switchboard import Switchboard
from lodger.sandbox.frames import ARMED, CALL, DONE, DROPPED, FAIL, HEAD, LOG, LOG_PART, READY, REPLY
from lodger.sandbox.job import Bundle, Job, Report
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.workers.launcher import Death, WorkerEnd
from lodger.sandbox.workers.worker_run import AttemptContext, NeverArmed, WorkerRun

LIMITS = Limits(
    wall_ms=2000, frame_bytes=8192, result_bytes=4096, log_lines=50, log_bytes=4096, log_line_bytes=256, host_calls=30
)
#: By how much this process may grow over a run, and how long one stream may take; gross bounds.
MAX_GROWN_BYTES = 32 * MIB
SLOWEST_S = 1.0
_ALLOWED = set(Outcome) - {Outcome.ENGINE_FAULT, Outcome.WORKER_LOST, Outcome.WALL_LIMIT}
_WARM_STREAMS = 100
_KINDS = [CALL, LOG, LOG_PART, DONE, FAIL, DROPPED, REPLY, READY, ARMED, 255]
_WEIGHTS = [40, 30, 1, 2, 2, 2, 1, 1, 1, 1]
_PLAIN = ['"x"', "1", "null", "true", "-0", "1e3", '"\\ud800"', '"\\u0000"', "NaN", "1e999", "9" * 400, '{"a":1,"a":2}']
_LENGTHS = [0, 1, 0xFFFFFFFF, 0x80000000, LIMITS.frame_bytes, LIMITS.frame_bytes + 1]


class Puppet(WorkerEnd):
    """A worker's end without a process: a kill is recorded and takes effect at once.

    Attributes:
        host: the host that counts calls.
        asked: how many calls had come when it was killed; -1 while it lives.
    """

    __slots__ = ("asked", "host")

    def __init__(self, end: socket.socket, pidfd: int, host: Switchboard) -> None:
        super().__init__(1, end, pidfd)
        self.host = host
        self.asked = -1

    def kill(self) -> None:
        """Die as by SIGKILL."""
        if self.asked < 0:
            self.asked = len(self.host.asked)
        if self.death is None:
            self.record_end(Death(9, 0, 0, 0))

    def leave(self) -> None:
        """Die by exiting."""
        if self.death is None:
            self.record_end(Death(0, 0, 0, 0))


@dataclass
class Tally:
    """What came of a run; ``faults`` must stay empty."""

    frames: int = 0
    streams: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    grown_bytes: int = 0
    slowest_s: float = 0.0

    @property
    def good(self) -> bool:
        """Whether everything held that must."""
        return not self.faults and self.grown_bytes <= MAX_GROWN_BYTES and self.slowest_s <= SLOWEST_S


def _value(chance: random.Random, depth: int = 0) -> str:
    kind = chance.randrange(9 if depth < 4 else 6)
    if kind < 6:
        return chance.choice([*_PLAIN, '"' + "y" * chance.randrange(300) + '"'])
    inner = [_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind < 8:
        return "[" + ",".join(inner) + "]"
    keys = [json.dumps(chance.choice(["a", "b", "__proto__", "then", ""])) for _ in inner]
    return "{" + ",".join(f"{key}:{value}" for key, value in zip(keys, inner, strict=True)) + "}"


def _frame(chance: random.Random, number: int) -> bytes:
    kind = chance.choices(_KINDS, _WEIGHTS)[0]
    body = _value(chance).encode("utf-8", "surrogatepass")
    if kind == CALL:
        name = chance.choice([b"echo", b"nothing", b"large", b"zzz", b"__class__", b"late"])
        body = number.to_bytes(4, "little") + bytes((len(name),)) + name + body
    elif kind in (LOG, LOG_PART):
        body = bytes((chance.randrange(6),)) + chance.randbytes(chance.randrange(400))
    elif kind == FAIL:
        outcome = chance.choice([b"script_error", b"cpu_limit", b"worker_lost", b"ok", b"engine_fault"])
        body = bytes((len(outcome),)) + outcome + body
    elif kind == DROPPED:
        body = chance.randbytes(4)
    return HEAD.pack(len(body), kind) + body


def _mutated(chance: random.Random, frame: bytes) -> bytes:
    wire = bytearray(frame)
    for _ in range(chance.randrange(1, 4)):
        how = chance.randrange(5)
        if how == 0:
            wire[chance.randrange(len(wire))] = chance.randrange(256)
        elif how == 1:
            wire[chance.randrange(len(wire))] ^= 1 << chance.randrange(8)
        elif how == 2:
            del wire[chance.randrange(len(wire)) :]
            wire = wire or bytearray(b"\0")
        elif how == 3:
            at = chance.randrange(len(wire))
            wire[at:at] = chance.randbytes(chance.randrange(20))
        else:
            wire[:4] = chance.choice(_LENGTHS).to_bytes(4, "little")
    return bytes(wire)


def stream(chance: random.Random) -> tuple[bytes, int]:
    """Return the bytes that one worker sends, and the number of frames in them."""
    count = chance.randrange(1, 80)
    rate = chance.choice([0.02, 0.1, 0.5])
    frames = [HEAD.pack(0, ARMED)]
    frames += [_frame(chance, number) for number in range(count)]
    return b"".join(_mutated(chance, frame) if chance.random() < rate else frame for frame in frames), len(frames)


async def _attempt(wire: bytes, tally: Tally) -> Report | None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ours.setblocking(False)
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()
    host = Switchboard(LIMITS)
    worker = Puppet(ours, os.pidfd_open(os.getpid()), host)
    job = Job(Bundle({"main.js": "1"}), LIMITS)
    running = asyncio.ensure_future(WorkerRun(worker, job, host, AttemptContext(0, {}, lambda: 0)).run())

    async def write() -> None:
        try:
            await loop.sock_sendall(theirs, wire)
            theirs.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        worker.leave()

    async def read() -> None:
        try:
            while await loop.sock_recv(theirs, 1 << 16):
                pass
        except OSError:
            pass

    others = [asyncio.ensure_future(write()), asyncio.ensure_future(read())]
    try:
        return await running
    except NeverArmed:
        return None
    finally:
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        theirs.close()
        if len(host.asked) != worker.asked:
            tally.faults.append(f"stream {tally.streams}: a call was started for a worker that already had a verdict")


async def _run(frames: int, seed: int) -> Tally:
    tally = Tally()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: tally.faults.append(str(context)[:500]))
    warm = 0
    while tally.frames < frames and len(tally.faults) < 10:
        wire, count = stream(random.Random(f"{seed}/{tally.streams}"))
        started = time.perf_counter()
        try:
            report = await _attempt(wire, tally)
        except Exception as fault:  # noqa: BLE001 - that anything is raised is the finding
            tally.faults.append(f"stream {tally.streams}: {fault!r}")
            break
        tally.slowest_s = max(tally.slowest_s, time.perf_counter() - started)
        _note(tally, report)
        tally.frames += count
        tally.streams += 1
        if tally.streams == _WARM_STREAMS:
            warm = resident_bytes()
    tally.grown_bytes = resident_bytes() - warm if warm else 0
    return tally


def _note(tally: Tally, report: Report | None) -> None:
    if report is None:
        tally.outcomes["never armed"] += 1
        return
    tally.outcomes[report.outcome] += 1
    if report.outcome not in _ALLOWED:
        tally.faults.append(f"stream {tally.streams}: {report.outcome} {report.error}")
    if report.result is not None:
        json.loads(report.result)


def fuzz(frames: int, seed: int = 1) -> Tally:
    """Send so many frames. The same seed sends the same."""
    return asyncio.run(_run(frames, seed))
