"""The runtime for untrusted JavaScript: QuickJS inside WebAssembly inside the worker.

The realm is baked beforehand (:mod:`lodger.sandbox.runtimes.bake`): the module that the zygote maps already holds the booted engine
and the standard library in its data segment. ``prepare`` instantiates it before the fork, so that a worker opens no file;
``fresh`` gives it its own randomness; ``bound`` its limits; ``run`` loads the author's modules and pumps promise jobs until the
bootstrap hands over a result or an error. Conversion of either happens inside the guest, under the same limits.
"""

import os
import time
from struct import unpack_from

from lodger.sandbox.frames import BUNDLE_PART, CALL, CALL_ID, DONE, DROPPED, FAIL, LOG, REPLY
from lodger.sandbox.runtimes.guest import Guest, Host, Machine, Thrown, Trapped
from lodger.sandbox.runtimes.libwasmtime import TRAP_OUT_OF_FUEL, TRAP_STACK_OVERFLOW, TRAP_UNREACHABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lodger.sandbox.runtime import Channel

#: What a worker calls of the kernel between its first filter and its end, measured with strace; the socket is the channel's.
SYSCALLS = (
    "read",
    "write",
    "sendto",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "poll",  # ppoll on aarch64: Channel.wait
    "ppoll",
    "mmap",
    "munmap",
    "mprotect",  # one per 64 KiB of guest memory growth
    "mremap",
    "madvise",
    "brk",
    "getrandom",
    "clock_gettime",  # CPU clock for the soft stop; the wall clock comes from the vDSO
    "rt_sigreturn",  # a stack overflow of the guest is a SIGSEGV that wasmtime answers
    "rt_sigprocmask",
    "sigaltstack",
    "gettid",
    "futex",
    "exit",
    "exit_group",
)

_WRAP = b"export default async function(){{"
_SOURCES = {
    b"lodger:begin": b"$begin()",
    b"lodger:module": b'import "lodger:begin"; import run from "ENTRY"; export default run',
    b"lodger:body": b'import run from "ENTRY"; import "lodger:begin"; export default run',
    b"lodger:plain": b'import "lodger:begin"; import "ENTRY"',
}
_OPEN_MEMORY = 16 << 20  # before the header: what the touch block may hold


class _Over(Exception):  # noqa: N818 - not an error: the answer is sent
    """The answer left; nothing of the guest may run any more."""


class _Stopped(Exception):  # noqa: N818 - a verdict
    """The attempt ends here with an outcome that the host found."""

    def __init__(self, outcome: str, name: str, message: str, about: bytes = b"") -> None:
        self.outcome = outcome
        self.error_name = name
        self.message = message
        self.about = about


def quoted(text: str) -> str:
    """Write text as a JSON string, without the json module."""
    out = []
    for letter in text:
        code = ord(letter)
        if letter in '"\\':
            out.append("\\" + letter)
        elif code < 32 or 0xD800 <= code < 0xE000:
            out.append(f"\\u{code:04x}")
        else:
            out.append(letter)
    return '"' + "".join(out) + '"'


def cut(text: bytes, most: int) -> bytes:
    """Give the longest start of UTF-8 text that fits, with a mark when something was cut."""
    if len(text) <= most:
        return text
    mark = "…".encode()
    return text[: max(most - len(mark), 0)].decode("utf-8", "ignore").encode() + mark


class QuickJS:
    """The runtime as the zygote holds it."""

    name = "quickjs"

    def __init__(self) -> None:
        self.machine: Machine | None = None
        self.fuelled: Machine | None = None
        self.numbers: dict[str, int] = {}
        self._ready: Guest | None = None
        self._settings: dict[str, str] = {}

    def prepare(self, settings: dict[str, str]) -> None:
        """Map the artefact and make an instance; settings: ``library``, ``artefact``, ``numbers``, and ``fuel_artefact`` for metered runs."""
        self.numbers = {}
        for pair in settings["numbers"].split():
            name, _, value = pair.partition("=")
            self.numbers[name] = int(value)
        self.machine = Machine(settings["library"])
        self.machine.load(settings["artefact"])
        if settings.get("fuel_artefact"):
            self.fuelled = Machine(settings["library"], fuel=True)
            self.fuelled.load(settings["fuel_artefact"])
        self._ready = self.machine.instance(_OPEN_MEMORY)
        for _ in range(3):
            self._touch(self._ready)
        cut(quoted("é").encode(), 3)  # first uses of what a job needs build lazily made structures once, for all workers
        time.process_time_ns()

    def fresh(self) -> "QuickRealm":
        """Take the prepared realm (once per process, later ones are made new), give it its own randomness and touch its pages."""
        if self.machine is None:
            raise RuntimeError("prepare comes first")
        guest, self._ready = self._ready or self.machine.instance(_OPEN_MEMORY), None
        realm = QuickRealm(self, guest)
        realm.reseed()
        self._touch(guest)
        return realm

    def _touch(self, guest: Guest) -> None:
        # A constant of ours through every path of a job that leaves nothing behind: strings in, a call, jobs.
        guest.apply(self.numbers["touch"], b'{"a":[1,"b",{"c":null}]}', self.numbers["undefined"], self.numbers["scratch"])
        guest.jobs()


class QuickRealm(Host):
    """One global scope, for one attempt."""

    def __init__(self, runtime: QuickJS, guest: Guest) -> None:
        self._runtime = runtime
        self._numbers = runtime.numbers
        self.guest = guest
        guest.host = self
        self._limits: dict[str, int] = {}
        self._epoch_us = 0
        self._epoch = time.monotonic_ns()
        self._deadline = 1 << 62
        self._channel: Channel | None = None
        self._modules: dict[bytes, bytes] = {}
        self._entry = b"main.js"
        self._way = b""
        self._pending: set[int] = set()
        self._backlog: list[bytes] = []
        self._wakes: int | None = None
        self._last_call = ""
        self._halting = False
        self._waited = 0

    def reseed(self) -> None:
        """Give Math.random its own state: forked twins would draw the same numbers."""
        seed = os.urandom(8)
        self.guest.poke(self._numbers["seed"], seed if any(seed) else b"\x01" * 8)

    def bound(self, limits: dict[str, int]) -> None:
        """Apply the header: memory, fuel, the soft CPU stop (counted from here) and the clock's start."""
        self._limits = limits
        if limits["fuel"]:
            machine = self._runtime.fuelled
            if machine is None:
                raise RuntimeError("this zygote was prepared without fuel")
            self.guest = machine.instance(max(limits["memory_bytes"], _OPEN_MEMORY), limits["fuel"])
            self.guest.host = self
            self.reseed()
        self.guest.limit(max(limits["memory_bytes"], self.guest.size()))
        self.guest.most = max(limits["frame_bytes"], limits["result_bytes"]) + 65536
        self._epoch_us = limits["now_us"] or time.time_ns() // 1000
        self._epoch = time.monotonic_ns()
        self._deadline = time.process_time_ns() + limits["cpu_ms"] * 1_000_000

    def run(self, bundle: bytes, channel: "Channel") -> None:
        """Run the bundle and answer by exactly one DONE or FAIL frame; an exception from here means a broken guest."""
        self._channel = channel
        try:
            self._drive(self._unpack(bundle))
        except _Over:
            pass
        except _Stopped as stop:
            self._fail(stop)
        except MemoryError:
            self._fail(self._out_of_memory())
        except Trapped as trap:
            self._fail(self._verdict(trap))
        except Thrown:
            if self.guest.size() < self._limits["memory_bytes"] // 2:
                raise
            self._fail(self._out_of_memory())

    # -- the life of an attempt --

    def _unpack(self, bundle: bytes) -> bytes:
        at, context, total = 0, b"{}", 0
        while at < len(bundle):
            name_size, size = unpack_from("<II", bundle, at)
            at += BUNDLE_PART.size
            name, source = bundle[at : at + name_size], bundle[at + name_size : at + name_size + size]
            at += name_size + size
            if not name:
                context = source
                continue
            if not self._modules:
                self._entry = name
            self._modules[name] = source
            total += size
        source = self._modules.get(self._entry, b"")
        if source.startswith(b"\xef\xbb\xbf"):
            source = self._modules[self._entry] = source[3:]
        for name, each in self._modules.items():
            try:
                each.decode()
            except UnicodeDecodeError as error:
                text = f"{name.decode('utf-8', 'replace')} is not UTF-8 text: byte {error.start} is 0x{each[error.start]:02x}"
                raise _Stopped("compile_error", "SyntaxError", text) from None
        declares = any(
            line.lstrip().startswith((b"import ", b"import{", b"import*", b"import'", b'import"', b"export ", b"export{", b"export*"))
            for line in source.split(b"\n")
        )
        limits = self._limits
        numbers = [limits[name] for name in ("result_bytes", "frame_bytes", "log_lines", "log_line_bytes", "log_bytes")]
        numbers += [int(b"export" in source), len(_WRAP), source.count(b"\n") + 1, int(declares)]
        names = b", ".join(name.replace(b"\n", b" ") for name in list(self._modules)[:20])
        return b"%s\n%s\n%s\n%s" % (str(numbers).encode(), self._entry, names, context)

    def _drive(self, message: bytes) -> None:
        guest = self.guest
        self._apply("start", message)
        while True:
            while guest.jobs():
                pass
            if self._backlog:
                self._apply("settle", self._backlog.pop(0))
            elif self._wakes is not None:
                self._sleep()
            elif self._pending:
                self._receive()
            else:
                self._apply("stuck", b"")
                if not guest.jobs():
                    raise RuntimeError("the guest neither answered nor failed")

    def _apply(self, function: str, message: bytes) -> None:
        self.guest.apply(self._numbers[function], message, self._numbers["undefined"], self._numbers["scratch"])

    def _sleep(self) -> None:
        # A timer is set: wait for it, or for an answer, whichever comes first.
        wait_ms = max(0, -(-((self._wakes or 0) - self._now_us()) // 1000))
        assert self._channel is not None
        if self._channel.wait(wait_ms):
            self._receive()
        elif self._wakes is not None and self._now_us() >= self._wakes:
            self._wakes = None
            self._apply("tick", b"")

    def _receive(self) -> None:
        assert self._channel is not None
        kind, payload = self._channel.receive()
        if kind != REPLY or len(payload) < 5:
            raise RuntimeError("the parent sent something that is no reply")
        (number,) = CALL_ID.unpack_from(payload)
        if number not in self._pending:
            raise RuntimeError("the parent answered a call that was not made")
        self._pending.discard(number)
        self._backlog.append(b"%d %d %s" % (number, payload[4], payload[5:]))

    # -- what the guest asks of us --

    def clock_us(self) -> int:
        """Give the script's clock, in whole milliseconds: no fine timer for side channels."""
        return self._now_us() // 1000 * 1000

    def _now_us(self) -> int:
        return self._epoch_us + (time.monotonic_ns() - self._epoch) // 1000

    def random(self, count: int) -> bytes:
        """Give the kernel's randomness."""
        return os.urandom(count)

    def interrupted(self) -> bool:
        """Stop the script when its CPU time is over: the one stop that can still say where it was."""
        if self._halting or time.process_time_ns() < self._deadline:
            return False
        self._halting = True
        spent = self._limits.get("cpu_ms", 0)
        text = f"the script used its {spent} ms of CPU time"
        try:
            self._apply("halted", b"")
        except _Stopped as place:
            raise _Stopped("cpu_limit", "CpuLimit", text + self._hint(), place.about) from None
        except (Thrown, Trapped, MemoryError):
            pass
        raise _Stopped("cpu_limit", "CpuLimit", text + self._hint())

    def _hint(self) -> str:
        return f"; its last call was {self._last_call}" if self._last_call else ""

    def resolve(self, base: bytes, wanted: bytes) -> bytes | None:
        """Name a module: relative to its importer, inside the bundle only; unknown names stay as they were written."""
        if not wanted.startswith((b"./", b"../", b"/")):
            return wanted
        parts = [] if wanted.startswith(b"/") else base.split(b"/")[:-1]
        for part in wanted.split(b"/"):
            if part == b"..":
                if not parts:
                    return wanted
                parts.pop()
            elif part not in (b"", b"."):
                parts.append(part)
        name = b"/".join(parts)
        return name if name in self._modules else wanted

    def source(self, name: bytes) -> bytes | None:
        """Give a module's text; an empty one becomes a newline, which the guest can load."""
        if name in _SOURCES:
            self._way = name if name != b"lodger:begin" else self._way
            return _SOURCES[name].replace(b"ENTRY", self._entry)
        source = self._modules.get(name)
        if source is None:
            return None
        if name == self._entry and self._way == b"lodger:body":
            return _WRAP + source + b"\n}}"
        return source or b"\n"

    def call(self, operation: int, text: bytes | None) -> bytes | None:
        """Serve the bootstrap: one letter names what it wants."""
        return _OPERATIONS[operation](self, text)

    def _async(self, text: bytes | None) -> None:
        self._send_call(*self._parted(text, 2))

    def _sync(self, text: bytes | None) -> bytes:
        name, json = self._parted(text, 1)
        self._waited += 1
        number = 0x80000000 + self._waited  # out of the way of the guest's own numbers
        self._send_call(b"%d" % number, name, json)
        start = b"%d " % number
        while True:
            self._receive()
            if self._backlog[-1].startswith(start):
                return self._backlog.pop()[len(start) :].replace(b" ", b"", 1)

    def _parted(self, text: bytes | None, cuts: int) -> list[bytes]:
        if text is None:
            raise _Stopped("output_limit", "OutputLimit", f"a call's arguments may have at most {self._limits['frame_bytes']} bytes")
        return text.split(b" ", cuts)

    def _send_call(self, number: bytes, name: bytes, json: bytes) -> None:
        assert self._channel is not None
        if len(json) + len(name) + 5 > self._limits["frame_bytes"]:
            raise _Stopped("output_limit", "OutputLimit", f"a call's arguments may have at most {self._limits['frame_bytes']} bytes")
        self._last_call = name.decode("utf-8", "replace")
        self._pending.add(int(number))
        self._channel.send(CALL, CALL_ID.pack(int(number)) + bytes((len(name),)) + name + json)

    def _log(self, text: bytes | None) -> None:
        if text is None or self._channel is None:
            return
        self._channel.send(LOG, bytes((text[0] - 48,)) + cut(text[1:], self._limits["log_line_bytes"]))

    def _done(self, text: bytes | None) -> None:
        dropped, _, json = (text or b"0 ").partition(b" ")
        if text is None or len(json) > self._limits["result_bytes"]:
            raise _Stopped("output_limit", "OutputLimit", f"the result has more than {self._limits['result_bytes']} bytes of JSON")
        self._say(dropped, DONE, json)

    def _failed(self, text: bytes | None) -> None:
        dropped, outcome, json = (text or b"0 script_error null").split(b" ", 2)
        if outcome == b"null":
            # A bare null is what running out of memory throws when there is no room for an error.
            near = self.guest.size() >= self._limits["memory_bytes"] * 9 // 10
            if near:
                raise self._out_of_memory()
            outcome = b"script_error"
        self._say(dropped, FAIL, bytes((len(outcome),)) + outcome + json)

    def _timer(self, text: bytes | None) -> None:
        self._wakes = None if text in (b"-", None) else self._now_us() // 1000 * 1000 + int(text) * 1000  # type: ignore[arg-type] - None is excluded

    def _halt(self, text: bytes | None) -> None:
        dropped, _, about = (text or b"0 ").partition(b" ")
        self._count_dropped(dropped)
        raise _Stopped("", "", "", about)

    def _random(self, text: bytes | None) -> bytes:
        return os.urandom(min(int(text or b"0"), 65536)).hex().encode()

    # -- the answer --

    def _count_dropped(self, dropped: bytes) -> None:
        assert self._channel is not None
        if dropped != b"0":
            self._channel.send(DROPPED, CALL_ID.pack(min(int(dropped), 0xFFFFFFFF)))

    def _say(self, dropped: bytes, kind: int, payload: bytes) -> None:
        assert self._channel is not None
        self._count_dropped(dropped)
        self._channel.send(kind, payload)
        raise _Over

    def _fail(self, stop: _Stopped) -> None:
        assert self._channel is not None
        body = f'{{"name":{quoted(stop.error_name)},"message":{quoted(stop.message)}'.encode()
        body += b"," + stop.about[1:-1] if len(stop.about) > 2 else b',"stack":"","file":null,"line":null,"column":null'
        outcome = stop.outcome.encode()
        self._channel.send(FAIL, bytes((len(outcome),)) + outcome + body + b"}")

    def _out_of_memory(self) -> _Stopped:
        most = self._limits["memory_bytes"] >> 20
        return _Stopped("memory_limit", "MemoryLimit", f"the script needs more than its {most} MiB of memory" + self._hint())

    def _verdict(self, trap: Trapped) -> _Stopped:
        if trap.code == TRAP_STACK_OVERFLOW:
            return _Stopped("stack_limit", "StackLimit", "the script's calls are nested too deeply: is there a recursion without end?")
        if trap.code == TRAP_OUT_OF_FUEL:
            return _Stopped("cpu_limit", "CpuLimit", f"the script used its {self._limits['fuel']} units of fuel" + self._hint())
        if trap.code == TRAP_UNREACHABLE and self.guest.size() >= self._limits["memory_bytes"] // 4:
            return self._out_of_memory()
        raise trap


_OPERATIONS = {
    ord("a"): QuickRealm._async,
    ord("s"): QuickRealm._sync,
    ord("l"): QuickRealm._log,
    ord("d"): QuickRealm._done,
    ord("e"): QuickRealm._failed,
    ord("t"): QuickRealm._timer,
    ord("h"): QuickRealm._halt,
    ord("r"): QuickRealm._random,
}
