"""One attempt in the parent process: the frames of one worker, its host calls, deadlines and verdict.

No frame of the worker is trusted. Whatever it sends, the parent's memory is bounded by the limits, the event loop is not blocked for long
(a turn reads one chunk and handles a bounded number of frames), and the result is always a verdict.
"""

import array
import asyncio
import json
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from lodger.sandbox import frames, prescan
from lodger.sandbox.job import CallHandler, Job, JobCancelled, LogLine, Reply, Report, Usage
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.workers import codec, error_location, source_map, verdict
from lodger.sandbox.workers.codec import LogBuffer
from lodger.sandbox.workers.launcher import CPU_GRACE_MS, WorkerEnd
from lodger.sandbox.workers.verdict import Verdict
from lodger.sandbox.workers.version_image import VersionImage
from lodger.sandbox.workers.waiting import Waiting
from lodger.stdlib.calls import COMPUTING, EFFECTS_PER_CALL, UNCOUNTED

_CHUNK = 1 << 16
_FRAMES_A_TURN = 256
#: Replies that a worker does not read are buffered here, each up to the size of a frame; this keeps one attempt's share of the parent's
#: memory below 8 MiB.
MAX_CALLS_IN_FLIGHT = 5
#: Maximum number of values, keys included, in the arguments of one call; bounds the time of the check.
_CALL_VALUES = 250_000
#: Log frames beyond the limit that are dropped before the worker, which ignores its limit, is stopped.
_LOG_PATIENCE = 1000
_REAP_S = 5.0
#: Outcomes after which the worker could not report its number of dropped log lines.
_STOPPED = {
    Outcome.CPU_LIMIT,
    Outcome.WALL_LIMIT,
    Outcome.MEMORY_LIMIT,
    Outcome.CALL_LIMIT,
    Outcome.CANCELLED,
    Outcome.CRASHED,
}
_SHORTEST_S = 0.002
#: Calls beyond the limit that a script may catch, if they only compute; the next one ends it.
_REFUSALS = 100
_journal = logging.getLogger("lodger.sandbox")


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """Facts shared by all attempts of one zygote.

    Attributes:
        idle_bytes: resident memory of a waiting worker.
        walls: maps each wall's name to whether it is active.
        now_us: clock for log lines, microseconds since 1970.
    """

    idle_bytes: int
    walls: dict[str, bool]
    now_us: Callable[[], int]


def _framed(kind: int, payload: bytes) -> bytes:
    """Return a frame."""
    return frames.HEAD.pack(len(payload), kind) + payload


def cpu_ms(pid: int) -> float:
    """Return the CPU time of another process, -1 if it ended."""
    if pid <= 0:  # these numbers stand for this process
        return -1.0
    try:
        return time.clock_gettime_ns((~pid << 3) | 2) / 1e6
    except OSError:
        return -1.0


class AttemptWatch:
    """Deadlines of an attempt: calls back once the wall time or the CPU time has passed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pid: int) -> None:
        self._loop = loop
        self._pid = pid
        #: Returns the seconds of the wall time that do not count.
        self.uncounted_s: Callable[[], float] = lambda: 0.0
        self._next: asyncio.TimerHandle | None = None
        self.cpu_before_ms = 0.0
        self.restart()

    def start(self, wall_ms: int, cpu_limit_ms: int, on_wall: Callable[[], None], on_cpu: Callable[[], None]) -> None:
        """Start both deadlines; ``cpu_limit_ms`` counts from now."""
        self._look(self._loop.time() + wall_ms / 1000, cpu_limit_ms, on_wall, on_cpu)

    def restart(self) -> None:
        """Count the CPU time from now on, when the worker waits."""
        self.cpu_before_ms = max(0.0, cpu_ms(self._pid))

    def stop(self) -> None:
        """Cancel both deadlines; safe to call twice."""
        if self._next is not None:
            self._next.cancel()

    def used_ms(self) -> float:
        """Return the CPU time that counts, 0 if the worker ended."""
        now = cpu_ms(self._pid)
        return max(0.0, now - self.cpu_before_ms)

    def _look(self, end: float, limit_ms: int, on_wall: Callable[[], None], on_cpu: Callable[[], None]) -> None:
        """Call back if a limit is reached; otherwise look again when the first can be."""
        now = self._loop.time()
        left_ms = limit_ms - self.used_ms()
        if left_ms <= 0:
            on_cpu()
        elif now >= (due := end + self.uncounted_s()):
            on_wall()
        else:
            when = min(max(due, now + _SHORTEST_S), now + max(left_ms / 1000, _SHORTEST_S))
            self._next = self._loop.call_at(when, self._look, end, limit_ms, on_wall, on_cpu)


class NeverArmed(Exception):
    """The worker died before it was armed: the job can be given to another worker."""


class WorkerRun:
    """Driver of one worker from the job to the verdict; :meth:`run` is called once."""

    def __init__(
        self,
        worker: WorkerEnd,
        job: Job,
        host: CallHandler,
        context: AttemptContext,
        image: VersionImage | None = None,
    ) -> None:
        self._worker = worker
        self._image = image
        self._job = job
        self._limits = job.limits
        self._host = host
        self._context = context
        self._now_us = context.now_us
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket = worker.socket
        self._watch = AttemptWatch(self._loop, worker.pid)
        self._idle_bytes = context.idle_bytes
        self._held = b""
        self._waiting = Waiting(job.slot, worker, self._watch.used_ms, context.idle_bytes)
        self._watch.uncounted_s = lambda: self._waiting.waited_s
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._longest = self._longest_frames()
        self._reading = self._writing = self._armed = False
        # Whether frames wait in the buffer; whether a turn for them is scheduled.
        self._backlog = self._turn_due = False
        self._call_waits = False  # whether the first waiting frame is a call beyond MAX_CALLS_IN_FLIGHT
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._made_uncounted = 0
        self._made_calls = 0
        self._last_call = ""
        self._refused_calls = 0
        self._log_frames = 0
        self._trace = bytearray()
        self._said_dropped = False
        self._log_buffer = LogBuffer(job.limits)
        self._result: str | None = None
        self._decided: asyncio.Future[Verdict | None] = self._loop.create_future()

    async def run(self) -> Report:
        """Send the job, wait for the verdict, kill the worker and return the report. Raises NeverArmed; JobCancelled when cancelled."""
        started = self._loop.time()
        cancelled = False
        limits = self._limits
        try:
            self._watch.start(
                limits.wall_ms,
                limits.cpu_ms + CPU_GRACE_MS,
                lambda: self._decide(verdict.wall_limit(limits, self._last_call)),
                lambda: self._decide(verdict.cpu_limit(limits, self._last_call)),
            )
            if self._job.stop is not None:
                self._job.stop.add_done_callback(self._stopped)
            self._worker.on_end = self._read_on
            self._read_on()
            self._send_job()
            try:
                found = await self._decided
            except asyncio.CancelledError:
                found, cancelled = verdict.cancelled(), True
            ended = self._loop.time()
        finally:
            self._end()
        try:
            await self._wait_until_reaped()
        except asyncio.CancelledError:
            if cancelled:
                raise
            found, cancelled = found or verdict.cancelled(), True
            await self._wait_until_reaped()
        if found is None:
            found = self._judge_death()
        self._hand_over(self._log_buffer.cut_line(self._now_us()))
        report = Report(
            outcome=found.outcome,
            result=self._result if found.outcome is Outcome.OK else None,
            error=found.error,
            logs=self._log_buffer.lines(self._now_us(), counted=found.outcome not in _STOPPED),
            dropped_logs=self._log_buffer.dropped,
            usage=Usage(
                round(self._cpu_ms(), 3),
                round((ended - started - self._waiting.waited_s) * 1000, 3),
                self._peak_bytes(),
                self._made_calls,
            ),
            walls=self._context.walls,
            trace=bytes(self._trace),
        )
        if cancelled:
            raise JobCancelled(report)
        return report

    def _stopped(self, _stop: "asyncio.Future[None]") -> None:
        """End the attempt, because the job's ``stop`` is done."""
        self._decide(verdict.cancelled())

    def _decide(self, found: Verdict | None) -> None:
        """Set the verdict, if there is none yet, and kill the worker; None: it is judged by its exit."""
        if not self._decided.done():
            self._decided.set_result(found)
            self._worker.kill()

    def _end(self) -> None:
        """Stop watching the worker, its deadlines and its socket."""
        self._watch.stop()
        self._watch.uncounted_s = float  # what refers to itself is left to the collector, with the job and all it holds
        self._waiting.stop()
        self._worker.on_end = None
        if self._job.stop is not None:
            self._job.stop.remove_done_callback(self._stopped)
        self._worker.kill()
        descriptor = self._socket.fileno()
        self._loop.remove_reader(descriptor)  # this attempt's reader, or still the pool's
        if self._writing:
            self._loop.remove_writer(descriptor)
        self._reading = self._writing = False
        if not self._decided.done():
            self._decided.cancel()
        for call in self._calls.values():
            call.cancel()
        self._worker.close()

    async def _wait_until_reaped(self) -> None:
        """Wait for the exit of the killed worker, so that its usage is known; log if it does not come."""
        if not await self._worker.wait_ended(_REAP_S):
            _journal.error("a killed worker was not reaped within %s s", _REAP_S)

    def _judge_death(self) -> Verdict:
        """Return the verdict on a worker that ended by itself. Raises NeverArmed if it had no job yet."""
        death = self._worker.death
        if not self._armed:
            raise NeverArmed
        if death is None:
            return verdict.worker_lost("the zygote that held the worker ended")
        return verdict.of_death(death.status, self._cpu_ms(), self._peak_bytes(), self._limits, self._last_call)

    def _cpu_ms(self) -> float:
        """Return the CPU time of the job in milliseconds, without warm-up; 0 if the exit is not known."""
        death = self._worker.death
        return 0.0 if death is None else max(0.0, death.cpu_us / 1000 - self._watch.cpu_before_ms)

    def _peak_bytes(self) -> int:
        """Return the job's peak of resident memory above an idle worker's; 0 if the exit is not known."""
        death = self._worker.death
        return 0 if death is None else max(0, death.peak_bytes - self._idle_bytes)

    # out

    def _send_job(self) -> None:
        """Send all frames of the job; the tenant's bytes wait in the socket until the worker is armed, those of a command here."""
        image, (kind, bundle), trace = self._image, self._payload(), self._job.trace
        first = _framed(frames.HEADER, codec.header(self._job, image=image is not None))
        rest = _framed(kind, bundle) + (b"" if trace is None else _framed(frames.TRACE, trace))
        if image is None:
            self._write(first + rest)
            return
        self._write(first)
        if self._job.bundle.wasm is not None:
            self._held, rest = rest, b""
        rest = _framed(frames.IMAGE, image.layout) + rest
        try:
            taken = self._socket.sendmsg(
                [rest], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", (image.descriptor,)))]
            )
        except OSError:  # also BlockingIOError: too many descriptors are on their way
            self._worker.kill()  # it was promised an image; another worker is given the job without one
        else:
            self._write(rest[taken:])

    def _write(self, data: bytes) -> None:
        """Send bytes to the worker; a full socket keeps the rest."""
        if data and not self._outgoing:
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                return  # the worker ended: the end of file is handled when reading
            data = data[sent:]
        if data:
            self._outgoing += data
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._socket.fileno(), self._write_on)

    def _write_on(self) -> None:
        """Send the rest of the bytes that the socket did not take."""
        try:
            del self._outgoing[: self._socket.send(memoryview(self._outgoing)[:_CHUNK])]
        except BlockingIOError:
            return
        except OSError:
            self._outgoing.clear()
        if not self._outgoing:
            self._writing = False
            self._loop.remove_writer(self._socket.fileno())
        self._read_on()

    # in

    def _read_on(self) -> None:
        """Start or stop reading: a worker that does not read its replies is not read either.

        A worker with too many calls is read up to its next call, so that its end is still noticed.
        """
        if self._decided.done():
            return
        taken = len(self._outgoing) <= self._limits.frame_bytes
        if taken and self._backlog and not self._turn_due and (self._room() or not self._call_waits):
            self._turn_due = True
            self._loop.call_soon(self._turn)
        wanted = taken and not self._backlog
        if self._backlog and not self._turn_due and self._worker.ended:
            self._read_remaining()
        if wanted != self._reading:
            self._reading = wanted
            if wanted:
                self._loop.add_reader(self._socket.fileno(), self._readable)
            else:
                self._loop.remove_reader(self._socket.fileno())

    def _read_remaining(self) -> None:
        """Handle the frames that the ended worker left, and decide."""
        if (left := codec.drain(self._socket, self._incoming, self._longest)) is not None:
            for kind, payload in left:
                self._frame(kind, payload)
            self._decide(None)

    def _room(self) -> bool:
        """Whether another host call may begin."""
        return len(self._calls) < MAX_CALLS_IN_FLIGHT and len(self._outgoing) <= self._limits.frame_bytes

    def _readable(self) -> None:
        """Receive bytes of the worker and handle the complete frames."""
        try:
            chunk = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._decide(None)
            return
        self._incoming += chunk
        self._turn()

    def _turn(self) -> None:
        """Handle the complete frames that were received, a bounded number in one turn of the loop."""
        self._turn_due = self._backlog = self._call_waits = False
        incoming, head = self._incoming, frames.HEAD
        start = looked = 0
        while not self._decided.done() and len(incoming) - start >= head.size:
            length, kind = head.unpack_from(incoming, start)
            if length > self._longest.get(kind, 0):
                if kind == frames.DONE and self._armed:
                    self._decide(verdict.output_limit(self._limits, length))
                else:
                    self._decide(verdict.protocol_error("a frame larger than its maximum"))
            if self._decided.done():
                break
            self._call_waits = kind == frames.CALL and not self._room()  # nothing after it is read either
            end = start + head.size + length
            if self._call_waits or (looked == _FRAMES_A_TURN and len(incoming) >= end):
                self._backlog = True
                break
            if len(incoming) < end:
                break
            looked += 1
            payload = bytes(memoryview(incoming)[start + head.size : end])
            start = end
            self._frame(kind, payload)
        del incoming[:start]
        self._read_on()

    def _longest_frames(self) -> dict[int, int]:
        """Return the maximum payload of each kind of frame, in bytes; other kinds must be empty."""
        limits = self._limits
        return {
            frames.CALL: limits.frame_bytes,
            frames.LOG: max(limits.log_line_bytes + 1, limits.frame_bytes),  # also cut by the parent
            frames.DONE: limits.result_bytes,
            frames.FAIL: max(codec.MAX_FAILURE_BYTES, limits.frame_bytes),
            frames.LOG_PART: limits.log_line_bytes + 2,  # a level, and one byte more than a line may have
            frames.DROPPED: frames.CALL_ID.size,
            frames.TRACE: frames.MAX_TRACE_BYTES,
        }

    def _payload(self) -> tuple[int, bytes]:
        """Return the kind and the payload of the frame with the tenant's bytes."""
        return frames.BUNDLE, codec.bundle(self._job.bundle, compiled=self._image is not None)

    def _frame(self, kind: int, payload: bytes) -> None:
        """Handle one frame of the worker."""
        self._waiting.computes()
        if not self._armed:
            if kind == frames.ARMED and not payload:
                self._begin()
            else:
                self._decide(verdict.protocol_error("a frame before the worker was ready"))
        elif kind == frames.CALL:
            self._call(payload)
        elif kind == frames.LOG:
            self._log(payload)
        elif kind == frames.LOG_PART:
            self._log_part(payload)
        elif kind == frames.TRACE:
            self._trace += payload
            if not payload or len(self._trace) > frames.MAX_TRACE_BYTES:
                self._decide(verdict.protocol_error("an empty trace of the clock, or more than its maximum"))
        elif kind == frames.DROPPED:
            self._dropped(payload)
        elif kind == frames.DONE:
            self._log_buffer.finish_line()
            self._done(payload)
        elif kind == frames.FAIL:
            self._log_buffer.finish_line()
            self._decide(self._failure(payload))
        else:
            self._decide(verdict.protocol_error("an unknown kind of frame"))

    def _begin(self) -> None:
        """Note that the worker is armed. A command has loaded its code, which counts for no limit, and is given its input now."""
        self._armed = True
        if self._held:
            self._watch.restart()
            self._idle_bytes = self._worker.resident_bytes()
            self._write(self._held)

    def _failure(self, payload: bytes) -> Verdict:
        """Return the verdict on an error that the worker reports."""
        found, modules = codec.failure(payload), self._job.bundle.modules
        if self._refused_calls and found.outcome is Outcome.SCRIPT_ERROR:
            found = verdict.uncaught_call_limit(found, self._limits)
        if found.outcome is Outcome.MEMORY_LIMIT and found.error is not None and "MiB" not in found.error.message:
            named = verdict.memory_limit(self._limits).error  # the guest does not know its limit
            found = replace(found, error=replace(found.error, message=named.message if named else ""))
        if self._job.bundle.wasm is not None:  # its error is written by the runtime, not by the module
            return found
        found = error_location.relocate(error_location.restrict_to_script(found, modules), modules)
        mapped = self._job.bundle.source_map
        return found if mapped is None else source_map.mapped(found, mapped)

    def _done(self, payload: bytes) -> None:
        """Handle the frame that ends the attempt: check the result of the script."""
        try:
            self._result = prescan.check(
                payload, max_bytes=self._limits.result_bytes, max_depth=self._limits.json_depth
            )
        except prescan.JsonRefused as refused:
            if refused.code in ("too_deep", "number_out_of_range"):
                self._decide(verdict.bad_request(str(refused)))
            elif self._job.bundle.wasm is not None:  # written by the module, not by our serializer
                self._decide(verdict.bad_result(str(refused)))
            else:
                self._decide(verdict.protocol_error("a result that is not JSON"))
            return
        self._decide(Verdict(Outcome.OK))

    def _log(self, payload: bytes) -> None:
        """Handle a frame with a log line: keep it within the limits, and hand it to the host."""
        self._log_frames += 1
        if not payload or self._log_frames > self._limits.log_lines + _LOG_PATIENCE:
            self._decide(
                verdict.protocol_error("log lines far beyond the limit" if payload else "a log line without a level")
            )
            return
        self._log_buffer.finish_line()
        self._hand_over(self._log_buffer.add(payload[0], payload[1:], self._now_us()))

    def _log_part(self, payload: bytes) -> None:
        """Handle a frame with a part of an unfinished log line."""
        if not payload or self._job.bundle.wasm is None or not self._log_buffer.add_part(payload):
            self._decide(
                verdict.protocol_error("parts of log lines far beyond the limit, or from a runtime that sends none")
            )

    def _hand_over(self, line: LogLine | None) -> None:
        """Pass a complete log line to the host."""
        if line is not None:
            try:
                self._host.log(line)
            except Exception:  # noqa: BLE001 - any error of the host is a fault of the engine
                _journal.exception("the host failed to handle a log line")
                self._decide(verdict.engine_fault("the engine failed to handle a log line"))

    def _dropped(self, payload: bytes) -> None:
        """Handle the frame with the number of log lines that the worker dropped."""
        if self._said_dropped or len(payload) != frames.CALL_ID.size:
            self._decide(verdict.protocol_error("a malformed or repeated count of dropped lines"))
            return
        self._said_dropped = True
        self._log_buffer.dropped += frames.CALL_ID.unpack(payload)[0]

    # host calls

    def _call(self, payload: bytes) -> None:
        """Check a host call, and start to answer it."""
        call = codec.call(payload)
        if call is None or call.number in self._calls:
            self._decide(verdict.protocol_error("a malformed host call" if call is None else "a repeated call number"))
            return
        self._last_call = call.name
        uncounted, maximum = call.name in UNCOUNTED, self._limits.host_calls
        if self._made_uncounted >= maximum * EFFECTS_PER_CALL if uncounted else self._made_calls >= maximum:
            over = verdict.call_limit(self._limits, uncounted=uncounted)
            assert over.error is not None
            self._refused_calls += 1
            if call.name in COMPUTING and self._refused_calls <= _REFUSALS:
                refusal = {"code": "calls_exceeded", "name": over.error.name, "message": over.error.message}
                self._reply(call.number, Reply(False, json.dumps(refusal)))
            else:
                self._decide(over)
            return
        self._made_uncounted += uncounted
        self._made_calls += not uncounted
        try:
            arguments = prescan.scan(
                call.arguments,
                max_bytes=self._limits.frame_bytes,
                max_depth=self._limits.json_depth,
                max_values=_CALL_VALUES,
            )
        except prescan.JsonRefused as refused:
            self._reply(call.number, Reply(False, json.dumps({"code": "bad_request", "message": str(refused)})))
            return
        self._calls[call.number] = self._loop.create_task(self._answer(call.number, call.name, arguments))
        self._waiting.called()

    async def _answer(self, number: int, name: str, arguments: str) -> None:
        """Answer a host call."""
        try:
            if self._decided.done():  # the attempt ended in the meantime
                return
            reply = await self._host.call(name, arguments)
            await self._waiting.enter()
            self._reply(number, reply)
        except Exception as error:  # noqa: BLE001 - any error of the host is a fault of the engine
            _journal.error(
                "the host failed to handle a call: %s: %s", type(error).__name__, error, exc_info=verdict.is_bug(error)
            )
            self._decide(verdict.of_host(error))
        finally:
            self._calls.pop(number, None)
            if not self._calls:
                self._waiting.answered()
            self._read_on()

    def _reply(self, number: int, reply: Reply) -> None:
        """Send the answer of a host call to the worker."""
        text = reply.json.encode()
        ok = reply.ok
        if len(text) + 5 > self._limits.frame_bytes:
            ok, text = False, b'{"code":"reply_too_large","message":"the reply is larger than the limit frame_bytes"}'
        if self._decided.done():
            return
        self._write(_framed(frames.REPLY, frames.CALL_ID.pack(number) + bytes((ok,)) + text))
