"""The realm of runtime ``quickjs``: runs one attempt in one global scope, from the bundle to the answer."""

import os
import sys
import time
from _sha1 import sha1  # hashlib would load OpenSSL into the zygote
from binascii import a2b_base64, b2a_base64

from lodger.sandbox.frames import BUNDLE_PART, CALL, CALL_ID, DONE, DROPPED, FAIL, IMAGE_HEAD, LOG, REPLY
from lodger.sandbox.runtimes.answer import Answered, Stopped, cut, quoted
from lodger.sandbox.runtimes.js import image, overrun
from lodger.sandbox.runtimes.js.guest import Guest, HostFunctions, Thrown, Trapped
from lodger.sandbox.runtimes.js.modules import Modules, SourceRefused
from lodger.sandbox.runtimes.libwasmtime import (
    TRAP_OUT_OF_BOUNDS,
    TRAP_STACK_OVERFLOW,
    TRAP_UNREACHABLE,
    WasmFault,
)
from lodger.sandbox.runtimes.timeline import Timeline

TYPE_CHECKING = False
if sys.version_info >= (3, 12):
    from _sha2 import sha256, sha384, sha512
else:
    from _sha256 import sha256
    from _sha512 import sha384, sha512
if TYPE_CHECKING:
    from lodger.sandbox.runtime import Channel

_WASM_PAGE = 65536
_HASHES = {b"SHA-1": sha1, b"SHA-256": sha256, b"SHA-384": sha384, b"SHA-512": sha512}
_ROOM = 16384  # enough memory to describe an error and send it


class QuickRealm(HostFunctions):
    """A global scope for one attempt."""

    modules_type = Modules
    #: Share of its memory limit from which a thrown null means that memory is exhausted.
    tight_percent = 90

    def __init__(self, numbers: dict[str, int], guest: Guest) -> None:
        self._numbers = numbers
        self.guest = guest
        guest.host = self
        self._limits: dict[str, int] = {}
        self.timeline = Timeline()
        self._deadline = 1 << 62
        self._channel: Channel | None = None
        self.modules = self.modules_type(b"")
        self._pending: set[int] = set()
        self._backlog: list[bytes] = []
        self._wake_at_us: int | None = None
        self._last_call = ""
        self._hash = sha256()
        self._halting = self._noting = False
        self._place = b""  # of a loop that uses much memory
        self._noted_at = 1 << 62
        self._sync_calls = 0
        self._returned = False
        self._dropped = b"0"
        self._facts: list[int] = []  # about the entry, found when its image was made

    def reseed(self) -> None:
        """Seed Math.random: otherwise all forks would draw the same numbers."""
        seed = self.timeline.random(8)
        self.guest.poke(self._numbers["seed"], seed if any(seed) else b"\x01" * 8)

    def bound(self, limits: dict[str, int]) -> None:
        """Apply the header: memory, the soft CPU limit (from now) and the initial clock."""
        self._limits = limits
        self.timeline.begin(limits)
        if self.timeline.seeded:
            self.reseed()
        self.guest.limit(max(limits["memory_bytes"], self.guest.used()))
        self.guest.maximum = max(limits["frame_bytes"], limits["result_bytes"]) + 65536
        self._noted_at = limits["memory_bytes"] // 2
        self._deadline = time.process_time_ns() + limits["cpu_ms"] * 1_000_000

    def map_image(self, descriptor: int, layout: bytes, limits: dict[str, int]) -> int:
        """Map the memory image of the compiled modules, before :meth:`bound`, and close the file. Reads no byte of it. Returns 0."""
        self.modules = self.modules_type(image.map_over(self.guest, descriptor, layout, limits["memory_bytes"]))
        _count, _pages, _bytes, *self._facts = IMAGE_HEAD.unpack_from(layout)
        return 0

    def compile(self, bundle: bytes, channel: "Channel") -> None:
        """Compile the bundle, evaluate modules that see nothing of an attempt, and send the image of the memory; see :mod:`image`."""
        image.compile_into(bundle, self.guest, self._numbers, self._limits, channel)

    def replay(self, trace: bytes) -> None:
        """Let the script see this trace of an earlier attempt's clock."""
        self.timeline.replay(trace)

    def run(self, bundle: bytes, channel: "Channel") -> None:
        """Run the bundle and answer with exactly one DONE or FAIL frame; an exception means a broken guest."""
        self._channel = channel
        try:
            if self._facts:  # its modules are those of the image, and were checked when that was made
                self.modules.context = bundle[BUNDLE_PART.size :]
            else:
                self.modules = self.modules_type(bundle)
                self.modules.check()
            self._drive(self.modules.message(self._limits, self._facts or self.modules.facts()))
        except SourceRefused as refused:
            self._fail(Stopped("compile_error", "SyntaxError", str(refused)))
        except Answered:
            pass
        except Stopped as stop:
            self._fail(stop)
        except MemoryError:
            self._fail(self._out_of_memory())
        except Trapped as trap:
            self._fail(self._verdict(trap))
        except Thrown:
            self._fail(self._broken())

    # -- the life of an attempt --

    def _drive(self, message: bytes) -> None:
        """Run the script to its end: jobs, answers of host calls, timers."""
        guest = self.guest
        self._apply("start", message)
        while True:
            while guest.jobs():
                pass
            if self._backlog:
                self._apply("settle", self._backlog.pop(0))
            elif not (over := self._returned and not self._pending) and self._full():
                raise self._out_of_memory()  # a failed allocation could not be reported
            elif not over and self._wake_at_us is not None:
                self._sleep()
            elif self._pending:
                self._receive()
            else:  # it has returned or is stuck: the bootstrap checks unhandled rejections and sends the answer
                self._apply("stuck", b"")
                if not guest.jobs():
                    raise self._broken()

    def _full(self) -> bool:
        """Return whether the idle guest has no memory for its next turn."""
        guest = self.guest
        if guest.used() + _WASM_PAGE <= self._limits["memory_bytes"]:
            return False
        address = guest.call("qjs_alloc", _ROOM)
        if address:
            guest.call("qjs_free", address, _ROOM)
        return not address

    def _apply(self, function: str, message: bytes) -> None:
        """Call a function of the guest's JavaScript with a message."""
        self.guest.apply(self._numbers[function], message, self._numbers["undefined"], self._numbers["scratch"])

    def _sleep(self) -> None:
        """Wait until the next timer of the script, or for an answer of a host call."""
        # Wait for the timer or a reply, whichever comes first.
        assert self._channel is not None
        assert self._wake_at_us is not None
        timeline, until_us = self.timeline, self._wake_at_us
        if not timeline.replays and self._channel.wait(timeline.wait_ms(until_us)):
            timeline.got()
            self._receive()
        elif timeline.rings(until_us, pending=bool(self._pending), channel=self._channel):
            self._wake_at_us = None
            self._apply("tick", b"")
        elif timeline.replays and self._pending:
            timeline.got()
            self._receive()

    def _receive(self) -> None:
        """Receive the answer of a host call and give it to the guest."""
        assert self._channel is not None
        kind, payload = self._channel.receive()
        if kind != REPLY or len(payload) < 5:
            raise RuntimeError("the parent sent a frame that is not a reply")
        (number,) = CALL_ID.unpack_from(payload)
        if number not in self._pending:
            raise RuntimeError("the parent answered a call that was not made")
        self._pending.discard(number)
        self._backlog.append(b"%d %d %s" % (number, payload[4], payload[5:]))

    # -- host functions --

    def clock_us(self) -> int:
        """Return the script's clock in whole milliseconds, too coarse for side channels."""
        return self.timeline.now_us()

    def random(self, count: int) -> bytes:
        """Return random bytes, with which the guest seeds its hash tables.

        Not those of the attempt's seed: an attempt from an image has drawn them before, and a script would draw others than in its replay.
        """
        return os.urandom(count)

    def interrupted(self) -> bool:
        """Stop the script at the soft CPU limit, which can still report the location."""
        if self._halting:
            return False
        if time.process_time_ns() < self._deadline:
            if self.guest.used() >= self._noted_at:
                self._note_place()
            return False
        self._halting = True
        spent = self._limits.get("cpu_ms", 0)
        text = f"the script used more than its {spent} ms of CPU time"
        try:
            self._apply("halted", b"")
        except Stopped as place:
            raise Stopped("cpu_limit", "LimitExceeded", text + self._hint(), place.details) from None
        except (Thrown, Trapped, MemoryError, WasmFault):
            pass
        raise Stopped("cpu_limit", "LimitExceeded", text + self._hint())

    def _note_place(self) -> None:
        """Keep the place of a loop that uses half of the memory, and after each eighth more: an exhausted guest may tell none."""
        self._noted_at = self.guest.used() + self._limits["memory_bytes"] // 8
        self._halting = self._noting = True
        try:  # contextlib would be loaded into the zygote
            self._apply("halted", b"")
        except (Thrown, Trapped, MemoryError):
            pass
        self._halting = self._noting = False

    def _hint(self) -> str:
        """Return the words on the last host call for error messages; empty without one."""
        return f"; its last call was {self._last_call}" if self._last_call else ""

    def call(self, operation: int, text: bytes | None) -> bytes | None:
        """Carry out a call of the bootstrap; one character names the operation."""
        return _OPERATIONS[operation](self, text)

    def _async(self, text: bytes | None) -> None:
        """Send a host call that is answered later."""
        self._send_call(*self._split(text, 2))

    def _sync(self, text: bytes | None) -> bytes:
        """Send a host call and wait for its answer."""
        name, json = self._split(text, 1)
        self._sync_calls += 1
        number = 0x80000000 + self._sync_calls  # distinct from the guest's own numbers
        self._send_call(b"%d" % number, name, json)
        start = b"%d " % number
        while True:
            self._receive()
            if self._backlog[-1].startswith(start):
                return self._backlog.pop()[len(start) :].replace(b" ", b"", 1)

    def _split(self, text: bytes | None, cuts: int) -> list[bytes]:
        """Return the parts of a message from the guest, which ``cuts`` spaces separate."""
        if text is None:
            raise Stopped(
                "output_limit",
                "LimitExceeded",
                f"the arguments of a call may have at most {self._limits['frame_bytes']} bytes",
            )
        return text.split(b" ", cuts)

    def _send_call(self, number: bytes, name: bytes, json: bytes) -> None:
        """Send a host call to the parent; raises Stopped if its arguments are too large."""
        assert self._channel is not None
        if len(json) + len(name) + 5 > self._limits["frame_bytes"]:
            raise Stopped(
                "output_limit",
                "LimitExceeded",
                f"the arguments of a call may have at most {self._limits['frame_bytes']} bytes",
            )
        if not 0 < len(name) < 256:
            raise Stopped("bad_request", "TypeError", "the name of a call must have 1 to 255 bytes")
        self._last_call = name.decode("utf-8", "replace")
        self._pending.add(int(number))
        self.timeline.send(self._channel)
        self._channel.send(CALL, CALL_ID.pack(int(number)) + bytes((len(name),)) + name + json)

    def _log(self, text: bytes | None) -> None:
        """Send a log line to the parent."""
        if text is None or self._channel is None:
            return
        if text.startswith(b"9") and text[1:10].isdigit():  # number of dropped lines, in case the worker is stopped
            self._dropped = text[1:10]
            return
        self.timeline.send(self._channel)
        self._channel.send(LOG, bytes((text[0] - 48,)) + cut(text[1:], self._limits["log_line_bytes"]))

    def _done(self, text: bytes | None) -> None:
        """Send the result of the script to the parent and end."""
        dropped, _, json = (text or b"0 ").partition(b" ")
        if text is None or len(json) > self._limits["result_bytes"]:
            raise Stopped(
                "output_limit",
                "LimitExceeded",
                f"the result has more than {self._limits['result_bytes']} bytes of JSON",
            )
        if not self._returned:  # jobs in the queue run before the answer is sent
            self._returned = True
            return
        self._send_answer(dropped, DONE, json)

    def _failed(self, text: bytes | None) -> None:
        """End the attempt by the error that the script threw."""
        dropped, outcome, json = (text or b"0 script_error null").split(b" ", 2)
        if outcome == b"null":
            # Thrown without memory for an error (a bare null) or for its message.
            if self.guest.used() >= self._limits["memory_bytes"] * self.tight_percent // 100:
                raise self._out_of_memory()
            outcome = b"script_error"
        if outcome == b"memory_limit" and b'"file":null' in json:
            raise self._out_of_memory()
        if self.modules.missing is not None and outcome == b"compile_error":
            file, line = self.modules.missing
            found = b'"file":%s,"line":%d' % (quoted(file.decode("utf-8", "replace")).encode(), line)
            json = json.replace(b'"file":null,"line":null', found, 1)
        self._send_answer(dropped, FAIL, bytes((len(outcome),)) + outcome + json)

    def _timer(self, text: bytes | None) -> None:
        """Handle the guest's message that tells when the next timer of the script is due."""
        if text is None or text == b"-":
            self._wake_at_us = None
        else:
            self._wake_at_us = self.timeline.now_us() + int(text) * 1000

    def _halt(self, text: bytes | None) -> None:
        """End the script by an error that the guest describes."""
        dropped, _, details = (text or b"0 ").partition(b" ")
        if self._noting:
            self._place = details
            return
        self._count_dropped(dropped)
        raise Stopped("", "", "", details)

    def _random(self, text: bytes | None) -> bytes:
        """Return random bytes in hexadecimal digits."""
        return self.timeline.random(min(int(text or b"0"), 65536)).hex().encode()

    def _digest(self, text: bytes | None) -> bytes | None:
        """Begin a digest by the name of a hash, put base64 after a space into it, or end it (empty) and return it in base64.

        Of base64 after "=" return the text; None if it is not UTF-8.
        """
        if not text:
            return b2a_base64(self._hash.digest(), newline=False)
        if text.startswith(b"="):
            data = a2b_base64(text[1:])
            try:
                data.decode()
            except UnicodeDecodeError:
                return None
            return data
        if text.startswith(b" "):
            self._hash.update(a2b_base64(text))
        else:
            self._hash = _HASHES[text]()
        return None

    def _quote(self, text: bytes | None) -> bytes | None:
        """Return the source around a place for an error's message, as "COUNT TEXT" with the number of characters before the place.

        Without a place: put the stack's limit back, and return whether an overflow had lowered it.
        """
        if not text:
            if "stack_limit_at" not in self._numbers:
                return None
            at, limit = self._numbers["stack_limit_at"], self._numbers["stack_limit"].to_bytes(4, "little")
            lowered = self.guest.peek(at, 4) != limit
            self.guest.poke(at, limit)
            return b"%d" % lowered
        try:
            name, line, column = text.rsplit(b"\n", 2)
            return self.modules.around(name, int(line), int(column))
        except ValueError:
            return None  # no numbers

    # -- the answer --

    def _count_dropped(self, dropped: bytes) -> None:
        """Report to the parent how many log lines were dropped, if any."""
        assert self._channel is not None
        self._dropped = b"0"
        if dropped != b"0":
            self._channel.send(DROPPED, CALL_ID.pack(min(int(dropped), 0xFFFFFFFF)))

    def _send_answer(self, dropped: bytes, kind: int, payload: bytes) -> None:
        """Send the frame that ends the attempt, after the number of dropped lines and the trace; raises Answered."""
        assert self._channel is not None
        self._count_dropped(dropped)
        self.timeline.send(self._channel, last=True)
        self._channel.answer(kind, payload)
        raise Answered

    def _fail(self, stop: Stopped) -> None:
        """Send the error that ends the script to the parent."""
        assert self._channel is not None
        body = f'{{"name":{quoted(stop.error_name)},"message":{quoted(stop.message)}'.encode()
        body += (
            b"," + stop.details[1:-1] if len(stop.details) > 2 else b',"stack":"","file":null,"line":null,"column":null'
        )
        outcome = stop.outcome.encode()
        self._count_dropped(self._dropped)
        self.timeline.send(self._channel, last=True)
        self._channel.answer(FAIL, bytes((len(outcome),)) + outcome + body + b"}")

    def _out_of_memory(self) -> Stopped:
        """Return the end of a script that needed more than its memory."""
        maximum = self._limits["memory_bytes"] >> 20
        return Stopped(
            "memory_limit",
            "LimitExceeded",
            f"the script needed more than {maximum} MiB of memory{self._hint()}"
            + ("; the place is the last that is known" if b'"file":"' in self._place else ""),
            self._place,
        )

    def _broken(self) -> Stopped:
        """Return the end of a script that broke the runtime's JavaScript."""
        # The bootstrap threw or did not answer: out of memory, or the script replaced built-ins that it needs.
        if self.guest.used() >= self._limits["memory_bytes"] // 2:
            return self._out_of_memory()
        return Stopped("script_error", "Error", "the script changed built-in objects that the runtime needs")

    def _verdict(self, trap: Trapped) -> Stopped:
        """Return the end of a script that was stopped by a trap."""
        if trap.code == TRAP_STACK_OVERFLOW or (trap.code == TRAP_OUT_OF_BOUNDS and self._below_stack()):
            return Stopped(
                "stack_limit",
                "LimitExceeded",
                "the script's calls are nested too deeply; check for infinite recursion",
            )
        size, maximum = self.guest.used(), self._limits["memory_bytes"]
        # The guest's allocator traps when memory is exhausted, and quickjs-ng 0.15 uses some failed allocations (promises), which reads
        # outside of the full memory.
        if trap.code == TRAP_UNREACHABLE and size >= maximum // 4:
            return self._out_of_memory()
        if trap.code == TRAP_OUT_OF_BOUNDS and size + _WASM_PAGE > maximum:
            return self._out_of_memory()
        if time.process_time_ns() >= self._deadline:
            overrun.unprotect(self.guest, self._numbers["interrupt_counter"])
            try:
                self.interrupted()
            except Stopped as stop:
                return stop
        raise trap

    def _below_stack(self) -> bool:
        """Whether the guest's stack pointer has passed the end of its stack."""
        # The guest's stack is at the bottom of its memory and grows down: an overflow wraps below zero.
        return self.guest.stack_pointer() >= self.guest.size()


_OPERATIONS = {
    ord("a"): QuickRealm._async,
    ord("s"): QuickRealm._sync,
    ord("l"): QuickRealm._log,
    ord("d"): QuickRealm._done,
    ord("e"): QuickRealm._failed,
    ord("t"): QuickRealm._timer,
    ord("h"): QuickRealm._halt,
    ord("r"): QuickRealm._random,
    ord("q"): QuickRealm._quote,
    ord("x"): QuickRealm._digest,
}
