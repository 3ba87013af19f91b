"""The guest adapter: how this host talks to the QuickJS that quickjs-rs ships as WebAssembly.

Another guest takes this one's place by another module with the same dozen methods. Everything crosses as flat text. Whatever
the guest hands over (pointers, lengths, status) is hostile once its engine is owned: masked, and compared with the memory's size.
"""

import ctypes
from ctypes import byref, c_void_p

from lodger.sandbox.runtimes import written
from lodger.sandbox.runtimes.libwasmtime import Extern, WasmFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lodger.sandbox.runtimes.js.machine import Machine
    from lodger.sandbox.walls.libc import Call

#: The file this adapter was proved against: quickjs-rs 0.2.6, quickjs-ng 0.15.
GUEST_SHA256 = "647ab11ae29cc6d39a6d17d3aa1e7a6a0b5fb9c44b4864475a18bc644f926050"

_MASK = 0xFFFFFFFF

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
    """The guest's run was torn down; the instance is spent."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Thrown(Exception):
    """A script evaluated by us threw: only while baking, the job's own errors are reported from inside the guest."""


class Host:
    """What the guest may ask of us; this one knows nothing, the realm's own overrides it. Every method is total."""

    def clock_us(self) -> int:
        """Give the wall clock in microseconds."""
        return 0

    def random(self, count: int) -> bytes:
        """Give that many random bytes."""
        return bytes(count)

    def interrupted(self) -> bool:
        """Say whether the guest must stop now."""
        return False

    def resolve(self, base: bytes, wanted: bytes) -> bytes | None:
        """Name the module that ``wanted`` means inside ``base``."""
        return None

    def source(self, name: bytes) -> bytes | None:
        """Give a module's text."""
        return None

    def call(self, operation: int, text: bytes | None) -> bytes | None:
        """Serve one call of the bootstrap; a text of None was longer than ``Guest.most``; an answer of None becomes undefined."""
        return None


class Guest:
    """One instance: one global scope of JavaScript."""

    def __init__(self, machine: "Machine", pre: c_void_p, memory_bytes: int) -> None:
        self.machine = machine
        self.host = Host()
        self.maximum = 1 << 20  # longest text that is copied out, bytes
        at = machine.lib.at
        self._store = at["wasmtime_store_new"](machine.engine, None, None)
        self._context = c_void_p(at["wasmtime_store_context"](self._store))
        self.limit(memory_bytes)
        if machine.fuel:
            self.fuel(1 << 40)
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
        self._base: int = ctypes.cast(at["wasmtime_memory_data"](self._context, self._memory), c_void_p).value or 0
        # All that the memory may ever be: it is reserved, and never moves.
        self._bytes = memoryview((ctypes.c_ubyte * (1 << 32)).from_address(self._base)).cast("B")
        self._size = self.size()

    def _export(self, name: str) -> "ctypes.Array[ctypes.c_uint64]":
        item = Extern()
        text = name.encode()
        if not self.machine.lib.at["wasmtime_instance_export_get"](
            self._context, self._instance, text, len(text), byref(item)
        ):
            raise WasmFault(f"the guest has no export {name}")
        address: ctypes.Array[ctypes.c_uint64] = item.of
        return address

    def close(self) -> None:
        """Release the instance's memory."""
        if self._store:
            self.machine.lib.at["wasmtime_store_delete"](self._store)
            self._store = None

    def fuel(self, units: int) -> None:
        """Set what is left of a metered guest's fuel."""
        lib = self.machine.lib
        lib.check(lib.at["wasmtime_context_set_fuel"](self._context, units))

    def limit(self, memory_bytes: int) -> None:
        """Bound the linear memory; what it already holds stays."""
        self.machine.lib.at["wasmtime_store_limiter"](self._store, memory_bytes, 20_000, 1, 4, 1)

    # -- memory --

    def size(self) -> int:
        """Give the size of the linear memory in bytes."""
        self._size = self._size_of(self._context, self._memory)
        return self._size

    def peek(self, address: int, count: int) -> bytes:
        """Copy bytes out of the guest."""
        if address + count > self._size and address + count > self.size():
            raise WasmFault("the guest pointed outside its memory")
        return self._bytes[address : address + count].tobytes()

    def poke(self, address: int, data: bytes) -> None:
        """Copy bytes into the guest."""
        end = address + len(data)
        if end > self._size and end > self.size():
            raise WasmFault("the guest pointed outside its memory")
        self._bytes[address:end] = data

    def copying(self, rehearse: "Callable[[], None]") -> "tuple[Call, ...]":
        """Give the system calls by which a fork makes its own what a rehearsal writes into this memory."""
        return written.copying(rehearse, self._base, self._base + self.size())

    def stack_pointer(self) -> int:
        """Read the guest's only mutable global; the baker carries it over."""
        value = (ctypes.c_int64 * 4)()
        self.machine.lib.at["wasmtime_global_get"](self._context, self._export("__stack_pointer"), value)
        return value[1] & _MASK

    # -- calls --

    def call(self, name: str, *arguments: int) -> int:
        """Call an export of i32s and give its i32."""
        return self._call(self._functions[name], arguments)

    def _call(self, function: "ctypes.Array[ctypes.c_uint64]", arguments: tuple[int, ...] = ()) -> int:
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
            self._stopped(error)
        return values[0] & _MASK

    def _stopped(self, error: int | None) -> None:
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
        """Make a handle of undefined."""
        return self._call(self._undefined)

    def string(self, text: bytes) -> int:
        """Make a handle of a string; the text is UTF-8."""
        address = self.give(text, 0)
        handle = self.call("new_string", address, len(text))
        if text:
            self.call("qjs_free", address, len(text))
        if not handle:
            raise MemoryError
        return handle

    def give(self, data: bytes | None, size_at: int) -> int:
        """Put bytes into memory that the guest owns and say where, 0 for none; their length goes to ``size_at``."""
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

    def text_size(self, handle: int) -> int:
        """Put a string into the result slot and give its length in bytes of UTF-8; lone surrogates are refused."""
        if self.call("get_string", handle):
            raise WasmFault("the guest handed over something that is not text")
        return self.call("qjs_last_len")

    def text(self, handle: int) -> bytes | None:
        """Read a string; None when it is longer than ``most``: it is never copied then."""
        size = self.text_size(handle)
        data = None if size > self.maximum else self.peek(self.call("qjs_last_ptr"), size) if size else b""
        self.call("qjs_result_free")
        return data

    def apply(self, function: int, text: bytes, undefined: int, scratch: int) -> None:
        """Call a function with one string; ``scratch`` is the address of 16 bytes of ours inside the guest."""
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
        """Run promise jobs, at most 100 000 of them, and say how many ran."""
        return self.call("execute_pending_jobs")

    def evaluate(self, source: bytes, scratch: int) -> int:
        """Evaluate a script of ours and give the handle of its value."""
        address = self.give(source, 0)
        status = self.call("eval_code", address, len(source), scratch)
        self.call("qjs_free", address, len(source))
        if status:
            raise Thrown(self.exception(scratch))
        return int.from_bytes(self.peek(scratch, 4), "little")

    def member(self, handle: int, name: str, scratch: int) -> int:
        """Read a property of an object of ours."""
        text = name.encode()
        address = self.give(text, 0)
        status = self.call("get_prop", handle, address, len(text), scratch)
        self.call("qjs_free", address, len(text))
        if status:
            raise Thrown(self.exception(scratch))
        return int.from_bytes(self.peek(scratch, 4), "little")

    def exception(self, scratch: int) -> str:
        """Give the text of the pending exception: name, message and stack."""
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
