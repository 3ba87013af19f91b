"""The realm of a WASI command: runs one attempt in its own store, from the start function to the answer."""

import ctypes
import os
from ctypes import byref, c_void_p, memmove, string_at

from lodger.sandbox.frames import BUNDLE_PART, CALL_ID, CODE, DONE, DROPPED, FAIL, LOG, LOG_PART, MAX_LOG_PARTS
from lodger.sandbox.runtimes.answer import Stopped, cut, quoted
from lodger.sandbox.runtimes.command.wasi import Exited, OutOfMemoryBounds
from lodger.sandbox.runtimes.libwasmtime import (
    TRAP_STACK_OVERFLOW,
    TRAP_UNREACHABLE,
    WasmFault,
)
from lodger.sandbox.runtimes.timeline import Timeline
from lodger.sandbox.walls.libc import map_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lodger.sandbox.runtime import Channel
    from lodger.sandbox.runtimes.command.machine import ModuleMachine

#: Names of traps (wasmtime/trap.h) for the author.
TRAPS = {
    1: "out of bounds memory access",
    2: "misaligned atomic access",
    3: "out of bounds table access",
    4: "indirect call to null",
    5: "indirect call to a function of another type",
    6: "integer overflow",
    7: "integer division by zero",
    8: "number out of range of an integer",
    9: "unreachable",
}

#: Maximum elements of a table, and number of tables; function tables of large programs have tens of thousands.
TABLE_ELEMENTS = 100_000
TABLES = 4
_UNKNOWN = 1 << 32  # offsets from here on mean that there is none
_INFO = 1  # level of lines on standard error


class Trapped(Exception):
    """WebAssembly ended the run by a trap, with its code and stack frames."""

    def __init__(self, code: int, frames: "list[tuple[str, int, int]]") -> None:
        super().__init__(code)
        self.code = code
        self.frames = frames


class ModuleRealm:
    """A store for one run; the command that :class:`lodger.sandbox.runtimes.command.wasi.Wasi` serves."""

    def __init__(self, machine: "ModuleMachine") -> None:
        self._machine = machine
        self._pre = c_void_p()
        self._limits: dict[str, int] = {}
        self._channel: Channel | None = None
        self._store = self._context = 0
        self._memory: ctypes.Array[ctypes.c_uint64] | None = None
        self._base = self._size = 0
        self._input = b""
        self._taken = 0
        self._output = bytearray()
        self._line = bytearray()
        self._lines = self._log_bytes = self._dropped = self._parts = 0
        self.timeline = Timeline()

    def map_image(self, descriptor: int, layout: bytes, _limits: dict[str, int]) -> int:
        """Load the module of compiled code in a file, close the file and return the size of the code."""
        (size,) = CODE.unpack(layout)
        code = map_readable(descriptor, size)
        os.close(descriptor)
        machine = self._machine
        self._pre = machine.joined(machine.lib.deserialize(machine.engine, code, size))
        return int(size)

    def bound(self, limits: dict[str, int]) -> None:
        """Create the store with the header's limits: linear memory, tables."""
        at = self._machine.lib.at
        self._limits = limits
        self._store = at["wasmtime_store_new"](self._machine.engine, None, None)
        self._context = at["wasmtime_store_context"](self._store)
        at["wasmtime_store_limiter"](self._store, limits["memory_bytes"], TABLE_ELEMENTS, 1, TABLES, 1)
        self.timeline.begin(limits)

    def replay(self, trace: bytes) -> None:
        """Let the script see this trace of an earlier attempt's clock."""
        self.timeline.replay(trace)

    def run(self, bundle: bytes, channel: "Channel") -> None:
        """Run the command and answer with exactly one DONE or FAIL frame; an exception is a bug of the host."""
        self._channel = channel
        self._machine.wasi.command = self
        name_size, size = BUNDLE_PART.unpack_from(bundle)
        start = BUNDLE_PART.size + name_size
        self._input = bundle[start : start + size]
        try:
            code = self._drive()
        except Stopped as stop:
            self._fail(stop)
        except Trapped as trap:
            self._fail(self._of_trap(trap))
        else:
            self._ended(code)

    # -- the run --

    def _drive(self) -> int:
        """Instantiate the module and run its start function; return its exit code."""
        instance = (ctypes.c_uint64 * 2)()
        trap = c_void_p()
        at = self._machine.lib.at
        try:
            error = at["wasmtime_instance_pre_instantiate"](self._pre, self._context, instance, byref(trap))
            self._look(error, trap)
            self._memory = self._machine.lib.export(self._context, instance, "memory")
            self._base = ctypes.cast(at["wasmtime_memory_data"](self._context, self._memory), c_void_p).value or 0
            start = self._machine.lib.export(self._context, instance, "_start")
            values = (ctypes.c_int64 * 2)()
            error = at["wasmtime_func_call_unchecked"](self._context, start, values, 1, byref(trap))
            self._look(error, trap)
        except Exited as ended:
            return ended.code
        return 0

    def _look(self, error: "int | None", trap: c_void_p) -> None:
        """Raise the exception for the end of a native call: that of a host function, a trap, or an error."""
        fault, self._machine.fault = self._machine.fault, None
        if fault is not None:
            raise fault
        if trap.value:
            lib = self._machine.lib
            raise Trapped(lib.trap_code(trap.value), lib.frames(trap.value))
        try:
            self._machine.lib.check(error)
        except WasmFault as refused:  # the initial memory or tables exceed the limits
            raise Stopped(
                "memory_limit",
                "LimitExceeded",
                f"the module's initial memory or tables exceed the limits: at most {self._limits['memory_bytes'] >> 20} MiB of memory "
                f"and {TABLES} tables of {TABLE_ELEMENTS} elements ({refused})",
            ) from None

    # -- memory, as WASI sees it --

    def size(self) -> int:
        """Return the size of the linear memory in bytes, 0 before it exists."""
        if self._memory is not None:
            self._size = self._machine.lib.at["wasmtime_memory_data_size"](self._context, self._memory)
        return self._size

    def peek(self, address: int, count: int) -> bytes:
        """Return bytes copied from the guest. Raises OutOfMemoryBounds."""
        if address + count > self._size and address + count > self.size():
            raise OutOfMemoryBounds
        return string_at(self._base + address, count)

    def poke(self, address: int, data: bytes) -> None:
        """Copy bytes into the guest. Raises OutOfMemoryBounds."""
        if address + len(data) > self._size and address + len(data) > self.size():
            raise OutOfMemoryBounds
        memmove(self._base + address, data, len(data))

    # -- streams, sleep --

    def read_input(self, count: int) -> bytes:
        """Return the next bytes of the input; empty at its end."""
        data = self._input[self._taken : self._taken + count]
        self._taken += len(data)
        return data

    def write_output(self, data: bytes) -> None:
        """Append to the result. Raises Stopped if it is too large."""
        self._output += data
        if len(self._output) > self._limits["result_bytes"]:
            maximum = self._limits["result_bytes"]
            raise Stopped("output_limit", "LimitExceeded", f"the result has more than {maximum} bytes of JSON")

    def write_log(self, data: bytes) -> None:
        """Append to the log. A line is sent at its end and its parts at once, so that they survive if the worker is stopped."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._extend(line)
            self._log(bytes(self._line))
            self._line.clear()
        part = self._extend(rest)
        if part and self._parts < MAX_LOG_PARTS and not self._log_full():
            assert self._channel is not None
            self._parts += 1
            self.timeline.send(self._channel)
            self._channel.send(LOG_PART, bytes((_INFO,)) + part)

    def _extend(self, data: bytes) -> bytes:
        """Append to the unfinished line as much as fits and return that part."""
        room = self._limits["log_line_bytes"] + 1 - len(self._line)  # one byte more, to recognise a cut
        part = data[: max(room, 0)]
        self._line += part
        return part

    def _log_full(self) -> bool:
        """Whether the log has reached one of its limits."""
        limits = self._limits
        return bool(self._dropped) or self._lines >= limits["log_lines"] or self._log_bytes >= limits["log_bytes"]

    def _log(self, line: bytes) -> None:
        """Send a log line to the parent, up to the limit."""
        if self._log_full():
            self._dropped += 1
            return
        assert self._channel is not None
        line = cut(line, self._limits["log_line_bytes"])
        self._lines += 1
        self._log_bytes += len(line)
        self.timeline.send(self._channel)
        self._channel.send(LOG, bytes((_INFO,)) + line)

    def sleep_us(self, microseconds: int) -> None:
        """Sleep by polling the socket, where no frame arrives; the parent's deadline ends a sleep that is too long."""
        assert self._channel is not None
        wait_ms, timeline = min(-(-microseconds // 1000), 1 << 30), self.timeline
        until_us = timeline.now_us() + wait_ms * 1000
        while True:
            if not timeline.replays and self._channel.wait(wait_ms):
                raise RuntimeError("the parent sent a reply to a command without calls")
            if timeline.rings(until_us, pending=False, channel=self._channel):
                return
            wait_ms = 1

    # -- the answer --

    def _ended(self, code: int) -> None:
        """End the run by the module's exit code: with its output, or by raising Stopped."""
        if code:
            self._fail(self._of_exit(code))
            return
        result = bytes(self._output).strip(b" \t\r\n")
        self._finish_log()
        assert self._channel is not None
        self.timeline.send(self._channel, last=True)
        self._channel.answer(DONE, result or b"null")

    def _of_exit(self, code: int) -> Stopped:
        """Return the end of a module with this exit code."""
        if self._full():
            return self._out_of_memory()
        return Stopped("script_error", "ExitCode", f"the module ended with exit code {code}")

    def _of_trap(self, trap: Trapped) -> Stopped:
        """Return the end of a module that was stopped by a trap."""
        details = self._place(trap.frames)
        if trap.code == TRAP_STACK_OVERFLOW:
            text = "the module's calls are nested too deeply; check for infinite recursion"
            return Stopped("stack_limit", "LimitExceeded", text, details)
        if trap.code == TRAP_UNREACHABLE and self._full():
            return self._out_of_memory()
        name = TRAPS.get(trap.code, "trap")
        where = f" in {_describe_frame(*trap.frames[0])}" if trap.frames else ""
        return Stopped("script_error", "Trap", name + where, details)

    def _full(self) -> bool:
        """Whether the memory cannot grow by a quarter; allocators then end the module by a trap or an exit."""
        return self.size() * 5 // 4 > self._limits["memory_bytes"]

    def _out_of_memory(self) -> Stopped:
        """Return the end of a module that needs more than its memory."""
        maximum = self._limits["memory_bytes"] >> 20
        return Stopped("memory_limit", "LimitExceeded", f"the module needs more than its {maximum} MiB of memory")

    @staticmethod
    def _place(frames: "list[tuple[str, int, int]]") -> bytes:
        """Return the stack of a trap as JSON text, from its frames."""
        stack = "\n".join(f"at {_describe_frame(*frame)}" for frame in frames)
        return f'{{"stack":{quoted(stack)},"file":null,"line":null,"column":null}}'.encode()

    def _finish_log(self) -> None:
        """Send the last incomplete log line."""
        assert self._channel is not None
        if self._line:
            self._log(bytes(self._line))
            self._line.clear()
        if self._dropped:
            self._channel.send(DROPPED, CALL_ID.pack(min(self._dropped, 0xFFFFFFFF)))

    def _fail(self, stop: Stopped) -> None:
        """Send the error that ends the run to the parent."""
        self._finish_log()
        assert self._channel is not None
        details = stop.details or self._place([])
        body = f'{{"name":{quoted(stop.error_name)},"message":{quoted(stop.message)},'.encode() + details[1:]
        outcome = stop.outcome.encode()
        self.timeline.send(self._channel, last=True)
        self._channel.answer(FAIL, bytes((len(outcome),)) + outcome + body)


def _describe_frame(name: str, number: int, offset: int) -> str:
    """Return a frame of a stack in words: function name, index and byte offset."""
    place = f" at byte 0x{offset:x}" if offset < _UNKNOWN else ""
    return f"{name or 'function'} (#{number}){place}"
