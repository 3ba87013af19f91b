"""The guest adapter: calls to and from the QuickJS that quickjs-rs ships as WebAssembly.

Another guest can be used through a module with the same methods. All values are exchanged as text. Pointers, lengths and status from the
guest are untrusted: they are masked and checked against the memory's size.
"""

import ctypes
from ctypes import byref, c_void_p

from lodger.sandbox.runtimes.js.modules import Modules
from lodger.sandbox.runtimes.libwasmtime import WasmFault
from lodger.sandbox.runtimes.written import WrittenPages
from lodger.sandbox.walls.libc import Call
from lodger.sandbox.walls.syscalls import NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lodger.sandbox.runtimes.js.machine import Machine

#: The guest that this adapter was tested with: quickjs-rs 0.2.6, quickjs-ng 0.15.
GUEST_SHA256 = "647ab11ae29cc6d39a6d17d3aa1e7a6a0b5fb9c44b4864475a18bc644f926050"

#: Size of the guest's stack in its memory; its own would hold two thousand calls. It does not count against the memory limit.
STACK_BYTES = 7 << 18

#: Export of a baked guest's function table.
TABLE = "table"

_MASK = 0xFFFFFFFF
_READ_WRITE, _FIXED = 3, 0x12  # PROT_READ and PROT_WRITE; MAP_PRIVATE and MAP_FIXED
_READ, _MAP = NUMBER["pread64"], NUMBER["mmap"]
#: Bytes of an image that cost more to map than to copy.
_MAX_COPIED = 16 << 12

_EXPORTS = (
    "qjs_alloc",
    "qjs_free",
    "qjs_last_ptr",
    "qjs_last_len",
    "qjs_result_free",
    "get_string",
    "new_string",
    "new_function",
    "set_prop",
    "get_prop",
    "global_object",
    "eval_code",
    "call_function",
    "last_exception",
    "execute_pending_jobs",
    "free_value",
    "run_gc",
)


class Trapped(Exception):
    """The guest ended by a trap; the instance is unusable."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Thrown(Exception):
    """Code of the library threw an exception; a job's exceptions are reported from inside the guest."""


class HostFunctions:
    """Host functions of the guest; the defaults do nothing, and a realm overrides them. No method raises for bad arguments.

    Attributes:
        modules: that the guest can import.
    """

    modules = Modules(b"")

    def clock_us(self) -> int:
        """Return the clock in microseconds since 1970."""
        return 0

    def random(self, count: int) -> bytes:
        """Return random bytes."""
        return bytes(count)

    def interrupted(self) -> bool:
        """Return whether the guest must stop now."""
        return False

    def call(self, operation: int, text: bytes | None) -> bytes | None:
        """Carry out a call of the bootstrap. A text longer than ``Guest.maximum`` is None; an answer of None becomes undefined."""
        return None


class Guest:
    """An instance of the guest, with one global scope of JavaScript."""

    def __init__(self, machine: "Machine", pre: c_void_p, memory_bytes: int) -> None:
        self.machine = machine
        self.host = HostFunctions()
        self.maximum = 1 << 20  # longest text that is copied out, bytes
        at = machine.lib.at
        self._store = at["wasmtime_store_new"](machine.engine, None, None)
        self._context = c_void_p(at["wasmtime_store_context"](self._store))
        self.limit(memory_bytes)
        self._instance = (ctypes.c_uint64 * 2)()
        trap = c_void_p()
        error = at["wasmtime_instance_pre_instantiate"](pre, self._context, self._instance, byref(trap))
        machine.lib.check(error)
        if trap.value:
            raise WasmFault(machine.lib.trap_message(trap.value))
        self._trap = trap
        self._trap_at = byref(trap)
        self._values = (ctypes.c_int64 * 16)()
        self._enter = machine.lib.bare("wasmtime_func_call_unchecked", c_void_p)
        self._size_of = machine.lib.bare("wasmtime_memory_data_size", ctypes.c_size_t)
        self._functions = {name: self._export(name) for name in _EXPORTS}
        self._undefined = self._export("new_undefined")
        self._memory = self._export("memory")
        self.base: int = ctypes.cast(at["wasmtime_memory_data"](self._context, self._memory), c_void_p).value or 0
        # The whole reserved range: the memory never moves.
        self._bytes = memoryview((ctypes.c_ubyte * (1 << 32)).from_address(self.base)).cast("B")
        self._size = self.size()

    def _export(self, name: str) -> "ctypes.Array[ctypes.c_uint64]":
        """Return the export of the instance with this name, as the C API passes it."""
        return self.machine.lib.export(self._context, self._instance, name)

    def resolve_functions(self) -> None:
        """Read the whole function table of a baked guest: libwasmtime fills in each entry at its first use."""
        get, table, value = self.machine.lib.at["wasmtime_table_get"], self._export(TABLE), (ctypes.c_uint64 * 8)()
        index = 0
        while get(self._context, table, index, value):
            index += 1

    def close(self) -> None:
        """Release the instance's memory."""
        if self._store:
            self.machine.lib.at["wasmtime_store_delete"](self._store)
            self._store = None

    def limit(self, memory_bytes: int) -> None:
        """Limit the growth of the linear memory."""
        self.machine.lib.at["wasmtime_store_limiter"](self._store, memory_bytes + STACK_BYTES, 20_000, 1, 4, 1)

    # -- memory --

    def size(self) -> int:
        """Return the size of the linear memory in bytes."""
        self._size = self._size_of(self._context, self._memory)
        return self._size

    def used(self) -> int:
        """Return the bytes of the linear memory that count against the memory limit: all but the stack."""
        return self.size() - STACK_BYTES

    def peek(self, address: int, count: int) -> bytes:
        """Return bytes copied from the guest. Raises WasmFault."""
        if address + count > self._size and address + count > self.size():
            raise WasmFault("the guest passed an address outside its memory")
        return self._bytes[address : address + count].tobytes()

    def poke(self, address: int, data: bytes) -> None:
        """Copy bytes into the guest. Raises WasmFault."""
        end = address + len(data)
        if end > self._size and end > self.size():
            raise WasmFault("the guest passed an address outside its memory")
        self._bytes[address:end] = data

    def grow(self, pages: int) -> None:
        """Grow the linear memory by this number of its pages of 64 KiB. Raises WasmFault above the limit."""
        before = ctypes.c_uint64()
        self.machine.lib.check(
            self.machine.lib.at["wasmtime_memory_grow"](self._context, self._memory, pages, byref(before))
        )
        self.size()

    def load_file(self, descriptor: int, offset: int, address: int, count: int) -> Call:
        """Return the system call that puts a part of a file here: copied, or mapped and copied on write if it is long. Raises WasmFault."""
        if address + count > self._size:
            raise WasmFault("an image reaches beyond the memory")
        place, start = c_void_p(self.base + address), c_void_p(offset)
        if count <= _MAX_COPIED:
            return _READ, descriptor, place, count, start
        # c_void_p: on the stack, ctypes writes only the lower half of a small integer
        return _MAP, place, c_void_p(count), _READ_WRITE, _FIXED, descriptor, start

    def written_pages(self, rehearse: "Callable[[], None]") -> WrittenPages:
        """Return the pages of this memory that a rehearsal writes."""
        return WrittenPages(rehearse, self.base, self.base + self.size())

    def stack_pointer(self) -> int:
        """Return the guest's only mutable global, which the baker copies."""
        value = (ctypes.c_int64 * 4)()
        self.machine.lib.at["wasmtime_global_get"](self._context, self._export("__stack_pointer"), value)
        return value[1] & _MASK

    # -- calls --

    def call(self, name: str, *arguments: int) -> int:
        """Call an export with i32 arguments and return its i32."""
        return self._call(self._functions[name], arguments)

    def _call(self, function: "ctypes.Array[ctypes.c_uint64]", arguments: tuple[int, ...] = ()) -> int:
        """Call an exported function."""
        values = self._values
        index = 0
        for value in arguments:
            values[index] = value
            index += 2
        machine = self.machine
        before, machine.guest = machine.guest, self
        error = self._enter(self._context, function, values, 8, self._trap_at)
        machine.guest = before
        if error or self._trap.value:
            self._raise_stop(error)
        return values[0] & _MASK

    def _raise_stop(self, error: int | None) -> None:
        """Raise the end of a call into the guest: the exception of a host function, a trap, or an error of the library."""
        fault, self.machine.fault = self.machine.fault, None
        trap, self._trap.value = self._trap.value, None
        if fault is not None:
            if trap:
                self.machine.lib.at["wasm_trap_delete"](trap)
            raise fault
        self.machine.lib.check(error)
        if trap:
            code = self.machine.lib.trap_code(trap)
            message = self.machine.lib.trap_message(trap)
            self.machine.lib.at["wasm_trap_delete"](trap)
            raise Trapped(code, message)

    def undefined(self) -> int:
        """Return a new handle of the JavaScript value ``undefined``."""
        return self._call(self._undefined)

    def string(self, text: bytes) -> int:
        """Return a new handle of a string; the text is UTF-8."""
        address = self.give(text, 0)
        handle = self.call("new_string", address, len(text))
        if text:
            self.call("qjs_free", address, len(text))
        if not handle:
            raise MemoryError
        return handle

    def give(self, data: bytes | None, size_at: int) -> int:
        """Copy bytes into memory allocated by the guest and return its address, 0 for None; store the length at ``size_at``."""
        if data is None:
            return 0
        address = self.call("qjs_alloc", len(data))
        if data:
            if not address:
                raise MemoryError
            self.poke(address, data)
        if size_at:
            self.poke(size_at, len(data).to_bytes(4, "little"))
        return address

    def text(self, handle: int) -> bytes | None:
        """Return a string; None, without copying it, if it is longer than ``maximum``. Raises WasmFault for lone surrogates."""
        if self.call("get_string", handle):
            raise WasmFault("the guest passed a value that is not text")
        size = self.call("qjs_last_len")
        data = None if size > self.maximum else self.peek(self.call("qjs_last_ptr"), size) if size else b""
        self.call("qjs_result_free")
        return data

    def apply(self, function: int, text: bytes, undefined: int, scratch: int) -> None:
        """Call a function with one string; ``scratch`` is the address of 16 reserved bytes inside the guest."""
        handle = self.string(text)
        self.poke(scratch, handle.to_bytes(4, "little"))
        status = self.call("call_function", function, undefined, scratch, 1, scratch + 8)
        if status:
            raise Thrown(self.exception(scratch))
        result = int.from_bytes(self.peek(scratch + 8, 4), "little")
        if result:
            self.call("free_value", result)
        self.call("free_value", handle)

    def jobs(self) -> int:
        """Run up to 100 000 promise jobs and return their number."""
        return self.call("execute_pending_jobs")

    def evaluate(self, source: bytes, scratch: int) -> int:
        """Evaluate a script of the library and return the handle of its value."""
        address = self.give(source, 0)
        status = self.call("eval_code", address, len(source), scratch)
        self.call("qjs_free", address, len(source))
        if status:
            raise Thrown(self.exception(scratch))
        return int.from_bytes(self.peek(scratch, 4), "little")

    def member(self, handle: int, name: str, scratch: int) -> int:
        """Return the handle of a property of a library object."""
        text = name.encode()
        address = self.give(text, 0)
        status = self.call("get_prop", handle, address, len(text), scratch)
        self.call("qjs_free", address, len(text))
        if status:
            raise Thrown(self.exception(scratch))
        return int.from_bytes(self.peek(scratch, 4), "little")

    def exception(self, scratch: int) -> str:
        """Return the text of the pending exception: name, message and stack."""
        if self.call("last_exception", scratch):
            return "no exception"
        thrown = int.from_bytes(self.peek(scratch, 4), "little")
        parts = []
        for name in ("name", "message", "stack"):
            try:
                parts.append((self.text(self.member(thrown, name, scratch)) or b"").decode("utf-8", "replace"))
            except (Thrown, WasmFault):
                continue
        return "\n".join(parts)
