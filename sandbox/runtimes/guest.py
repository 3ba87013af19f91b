"""The guest adapter: how this host talks to the QuickJS that quickjs-rs ships as WebAssembly.

Another guest takes this one's place by another module with the same dozen methods. Everything crosses as flat text. Whatever
the guest hands over (pointers, lengths, status) is hostile once its engine is owned: masked, and compared with the memory's size.
"""

import ctypes
from ctypes import byref, c_void_p, memmove, string_at

from lodger.sandbox.runtimes.libwasmtime import Callback, Extern, Library, WasmFault, slots

#: The file this adapter was proved against: quickjs-rs 0.2.6, quickjs-ng 0.15.
GUEST_SHA256 = "647ab11ae29cc6d39a6d17d3aa1e7a6a0b5fb9c44b4864475a18bc644f926050"

_MASK = 0xFFFFFFFF
_BAD_DESCRIPTOR = 8  # WASI errno EBADF
_NO_IMPLEMENTATION = -1  # what env.host_call answers when it fails: the guest throws its own bland HostError

# module, name, parameters, results: i is i32, I is i64
_IMPORTS = (
    ("env", "host_call", "iiiii", "i"),
    ("env", "host_interrupt", "", "i"),
    ("env", "host_module_normalize", "iiiii", "i"),
    ("env", "host_module_load", "iii", "i"),
    ("wasi_snapshot_preview1", "random_get", "ii", "i"),
    ("wasi_snapshot_preview1", "environ_get", "ii", "i"),
    ("wasi_snapshot_preview1", "environ_sizes_get", "ii", "i"),
    ("wasi_snapshot_preview1", "clock_time_get", "iIi", "i"),
    ("wasi_snapshot_preview1", "fd_close", "i", "i"),
    ("wasi_snapshot_preview1", "fd_fdstat_get", "ii", "i"),
    ("wasi_snapshot_preview1", "fd_seek", "iIii", "i"),
    ("wasi_snapshot_preview1", "fd_write", "iiii", "i"),
    ("wasi_snapshot_preview1", "proc_exit", "i", ""),
)

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


class Machine:
    """An engine with the guest's compiled module and our imports: made once, held by the zygote."""

    def __init__(self, library: str, *, fuel: bool = False) -> None:
        self.lib = Library(library)
        self.fuel = fuel
        self.engine = self.lib.engine(fuel=fuel)
        self.guest: Guest | None = None
        self._pre = c_void_p()
        self._callbacks: list[object] = []
        self.fault: BaseException | None = None

    def load(self, artefact: str) -> None:
        """Map a compiled module from a file that the caller knows to be ours."""
        module = c_void_p()
        name = artefact.encode("utf-8", "surrogateescape")
        self.lib.check(self.lib.at["wasmtime_module_deserialize_file"](self.engine, name, byref(module)))
        self._link(module)

    def take(self, wasm: bytes) -> None:
        """Compile a module from its bytes; only the baker does this."""
        module = c_void_p()
        self.lib.check(self.lib.at["wasmtime_module_new"](self.engine, wasm, len(wasm), byref(module)))
        self._link(module)

    def _link(self, module: c_void_p) -> None:
        at = self.lib.at
        linker = at["wasmtime_linker_new"](self.engine)
        for space, name, parameters, results in _IMPORTS:
            kind = self.lib.functype(parameters, results)
            callback = self._callback(getattr(self, f"_{name}", self._refuse), len(parameters), bool(results))
            self._callbacks.append(callback)
            at_space, at_name = space.encode(), name.encode()
            self.lib.check(
                at["wasmtime_linker_define_func_unchecked"](
                    linker, at_space, len(at_space), at_name, len(at_name), kind, callback, None, None
                )
            )
            at["wasm_functype_delete"](kind)
        self.lib.check(at["wasmtime_linker_instantiate_pre"](linker, module, byref(self._pre)))

    def instance(self, memory_bytes: int, fuel: int = 0) -> "Guest":
        """Make a fresh guest whose memory cannot grow past that bound."""
        return Guest(self, self._pre, memory_bytes, fuel)

    def _callback(self, function, count: int, answers: bool):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - ctypes' own types
        trap = self.lib.at["wasmtime_trap_new"]

        def enter(_env: int, _caller: int, address: int, _size: int) -> int | None:
            try:
                values = slots(address, count or 1)
                answer = function(*[values[2 * index] for index in range(count)])
                if answers:
                    values[0] = answer & _MASK
            except BaseException as error:  # noqa: BLE001 - nothing may unwind through native frames
                self.fault = error
                return trap(b"stop", 4)  # type: ignore[no-any-return]
            return None

        return Callback(enter)

    # -- the imports, one method each --

    def _refuse(self, *_arguments: int) -> int:
        return _BAD_DESCRIPTOR

    def _proc_exit(self, _code: int) -> None:
        raise WasmFault("the guest gave up")

    def _environ_get(self, _table: int, _text: int) -> int:
        return 0

    def _environ_sizes_get(self, count: int, size: int) -> int:
        guest = self._running()
        guest.poke(count & _MASK, bytes(4))
        guest.poke(size & _MASK, bytes(4))
        return 0

    def _clock_time_get(self, _clock: int, _precision: int, out: int) -> int:
        guest = self._running()
        guest.poke(out & _MASK, (guest.host.clock_us() * 1000).to_bytes(8, "little"))
        return 0

    def _random_get(self, out: int, count: int) -> int:
        guest = self._running()
        guest.poke(out & _MASK, guest.host.random(min(count & _MASK, 65536)))
        return 0

    def _host_interrupt(self) -> int:
        return int(self._running().host.interrupted())

    def _host_module_normalize(self, base: int, base_size: int, wanted: int, wanted_size: int, out: int) -> int:
        guest = self._running()
        name = guest.host.resolve(guest.peek(base & _MASK, base_size & _MASK), guest.peek(wanted & _MASK, wanted_size & _MASK))
        return guest.give(name, out & _MASK)

    def _host_module_load(self, name: int, size: int, out: int) -> int:
        guest = self._running()
        return guest.give(guest.host.source(guest.peek(name & _MASK, size & _MASK)), out & _MASK)

    def _host_call(self, name: int, _size: int, _this: int, count: int, arguments: int) -> int:
        guest = self._running()
        operation = guest.peek(name & _MASK, 1)[0]
        text: bytes | None = b""
        if count & _MASK:
            text = guest.text(int.from_bytes(guest.peek(arguments & _MASK, 4), "little"))
        answer = guest.host.call(operation, text)
        if answer is None:
            return guest.undefined()
        return guest.string(answer)

    def _running(self) -> "Guest":
        if self.guest is None:
            raise WasmFault("an import was called outside any guest")
        return self.guest


class Guest:
    """One instance: one global scope of JavaScript."""

    def __init__(self, machine: Machine, pre: c_void_p, memory_bytes: int, fuel: int) -> None:
        self.machine = machine
        self.host = Host()
        self.most = 1 << 20  # longest text that is copied out, bytes
        at = machine.lib.at
        self._store = at["wasmtime_store_new"](machine.engine, None, None)
        self._context = at["wasmtime_store_context"](self._store)
        self.limit(memory_bytes)
        if machine.fuel:
            machine.lib.check(at["wasmtime_context_set_fuel"](self._context, fuel))
        self._instance = (ctypes.c_uint64 * 2)()
        trap = c_void_p()
        error = at["wasmtime_instance_pre_instantiate"](pre, self._context, self._instance, byref(trap))
        machine.lib.check(error)
        if trap.value:
            raise WasmFault(machine.lib.trap_message(trap.value))
        self._trap = trap
        self._trap_at = byref(trap)
        self._values = (ctypes.c_int64 * 16)()
        self._enter = at["wasmtime_func_call_unchecked"]
        self._size_of = at["wasmtime_memory_data_size"]
        self._functions = {name: self._export(name) for name in _EXPORTS}
        self._undefined = self._export("new_undefined")
        self._memory = self._export("memory")
        self._base: int = ctypes.cast(at["wasmtime_memory_data"](self._context, self._memory), c_void_p).value or 0
        self._size = self.size()

    def _export(self, name: str) -> "ctypes.Array[ctypes.c_uint64]":
        item = Extern()
        text = name.encode()
        if not self.machine.lib.at["wasmtime_instance_export_get"](
            self._context, self._instance, text, len(text), byref(item)
        ):
            raise WasmFault(f"the guest has no export {name}")
        return item.of

    def close(self) -> None:
        """Release the instance's memory."""
        if self._store:
            self.machine.lib.at["wasmtime_store_delete"](self._store)
            self._store = None

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
        return string_at(self._base + address, count)

    def poke(self, address: int, data: bytes) -> None:
        """Copy bytes into the guest."""
        if address + len(data) > self._size and address + len(data) > self.size():
            raise WasmFault("the guest pointed outside its memory")
        memmove(self._base + address, data, len(data))

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
        data = None if size > self.most else self.peek(self.call("qjs_last_ptr"), size) if size else b""
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
