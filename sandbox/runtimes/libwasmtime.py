"""The C API of libwasmtime by ctypes: the thirty functions that a worker needs, resolved once in the zygote.

The wasmtime package's Python side is not imported: it makes every fork dearer (9 MB of anonymous memory) and allocates on each
call. Every pointer is a plain integer here; one array of raw values is shared by all calls, because the callee reads its
arguments before anything else runs and the caller reads the result at once.
"""

import ctypes
from ctypes import PYFUNCTYPE, c_bool, c_char_p, c_int64, c_size_t, c_ubyte, c_uint64, c_void_p

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Traps that mean something to us (wasmtime/trap.h).
TRAP_STACK_OVERFLOW = 0
TRAP_OUT_OF_BOUNDS = 1
TRAP_UNREACHABLE = 9
TRAP_OUT_OF_FUEL = 11

#: Deepest native stack of the guest, bytes; more makes engine creation abort, and it must stay below 3/4 of RLIMIT_STACK.
WASM_STACK_BYTES = 2 << 20

Callback = PYFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_size_t)

_P = c_void_p
_TABLE: "dict[str, tuple[Any, Any]]" = {
    "wasm_config_new": (_P, ()),
    "wasm_engine_new_with_config": (_P, (_P,)),
    "wasm_engine_delete": (None, (_P,)),
    "wasm_functype_new": (_P, (_P, _P)),
    "wasm_functype_delete": (None, (_P,)),
    "wasm_valtype_new": (_P, (c_ubyte,)),
    "wasm_valtype_vec_new": (None, (_P, c_size_t, _P)),
    "wasm_byte_vec_delete": (None, (_P,)),
    "wasm_trap_delete": (None, (_P,)),
    "wasm_trap_message": (None, (_P, _P)),
    "wasmtime_trap_code": (c_bool, (_P, _P)),
    "wasmtime_trap_new": (_P, (c_char_p, c_size_t)),
    "wasmtime_error_delete": (None, (_P,)),
    "wasmtime_error_message": (None, (_P, _P)),
    "wasmtime_module_new": (_P, (_P, c_char_p, c_size_t, _P)),
    "wasmtime_module_serialize": (_P, (_P, _P)),
    "wasmtime_module_deserialize_file": (_P, (_P, c_char_p, _P)),
    "wasmtime_module_delete": (None, (_P,)),
    "wasmtime_linker_new": (_P, (_P,)),
    "wasmtime_linker_delete": (None, (_P,)),
    "wasmtime_linker_define_func_unchecked": (
        _P,
        (_P, c_char_p, c_size_t, c_char_p, c_size_t, _P, Callback, _P, _P),
    ),
    "wasmtime_linker_instantiate_pre": (_P, (_P, _P, _P)),
    "wasmtime_instance_pre_instantiate": (_P, (_P, _P, _P, _P)),
    "wasmtime_instance_pre_delete": (None, (_P,)),
    "wasmtime_instance_export_get": (c_bool, (_P, _P, c_char_p, c_size_t, _P)),
    "wasmtime_store_new": (_P, (_P, _P, _P)),
    "wasmtime_store_delete": (None, (_P,)),
    "wasmtime_store_context": (_P, (_P,)),
    "wasmtime_store_limiter": (None, (_P, c_int64, c_int64, c_int64, c_int64, c_int64)),
    "wasmtime_context_set_fuel": (_P, (_P, c_uint64)),
    "wasmtime_func_call_unchecked": (_P, (_P, _P, _P, c_size_t, _P)),
    "wasmtime_memory_data": (_P, (_P, _P)),
    "wasmtime_memory_data_size": (c_size_t, (_P, _P)),
    "wasmtime_global_get": (None, (_P, _P, _P)),
}

#: Switched off in every engine: proposals that neither the guest nor a command needs. Each is compiler and runtime code that a
#: stranger could reach; a smaller wall is easier to guard.
UNNEEDED = (
    "wasm_threads",
    "wasm_tail_call",
    "wasm_function_references",
    "wasm_gc",
    "gc_support",
    "wasm_relaxed_simd",
    "wasm_multi_memory",
    "wasm_memory64",
    "wasm_wide_arithmetic",
    "wasm_exceptions",
    "wasm_custom_page_sizes",
    "wasm_stack_switching",
    "wasm_component_model",
)


class Switches:
    """What an engine can do beyond the library's own defaults, or cannot: names of the C API's ``wasmtime_config_…_set``."""

    def __init__(self, off: "tuple[str, ...]", on: "tuple[str, ...]" = ()) -> None:
        self.off = off
        self.on = on

    def text(self, *, fuel: bool) -> str:
        """Describe an engine for the key of what it compiles."""
        return f"stack={WASM_STACK_BYTES} fuel={int(fuel)} off={','.join(self.off)} on={','.join(self.on)}"


#: Of the engine that runs QuickJS: the guest has no vector instruction.
GUEST = Switches((*UNNEEDED, "wasm_simd"))


class WasmFault(Exception):
    """libwasmtime refused something of ours: never the tenant's doing."""


class ByteVec(ctypes.Structure):
    """wasm_byte_vec_t, and by layout every other vector of the C API."""

    _fields_ = [("size", c_size_t), ("data", c_void_p)]


class Extern(ctypes.Structure):
    """wasmtime_extern_t with the union as raw words; ``of`` is what the func, memory and global calls take."""

    _fields_ = [("kind", c_ubyte), ("of", c_uint64 * 3)]


class Library:
    """The functions by name, and the few shapes around them that every user needs."""

    def __init__(self, path: str) -> None:
        self.dll = ctypes.PyDLL(path)
        self.at: dict[str, ctypes._NamedFuncPointer] = {}
        for name, (result, arguments) in _TABLE.items():
            function = self.dll[name]
            function.restype = result
            function.argtypes = arguments
            self.at[name] = function

    def bare(self, name: str, result: "Any") -> "ctypes._FuncPointer":  # noqa: ANN401 - a ctypes type
        """Give a function of its own without argument types, for hot paths: their converters make two objects for each argument.

        Pointers must be given as ctypes has them; a small int is widened with its sign.
        """
        function = self.dll[name]
        function.restype = result
        return function

    def check(self, error: int | None) -> None:
        """Raise the C API's error as ours and release it."""
        if error:
            message = ByteVec()
            self.at["wasmtime_error_message"](error, ctypes.byref(message))
            text = ctypes.string_at(message.data, message.size).decode("utf-8", "replace")
            self.at["wasm_byte_vec_delete"](ctypes.byref(message))
            self.at["wasmtime_error_delete"](error)
            raise WasmFault(text)

    def engine(self, switches: "Switches", *, fuel: bool) -> int:
        """Make an engine with these settings; they are part of the key of what it compiles."""
        config = self.at["wasm_config_new"]()
        for name in switches.off:
            self._set(config, name, False)
        for name in switches.on:
            self._set(config, name, True)
        self._set(config, "consume_fuel", fuel)
        stack = self.dll["wasmtime_config_max_wasm_stack_set"]
        stack.argtypes, stack.restype = (c_void_p, c_size_t), None
        stack(config, WASM_STACK_BYTES)
        engine: int | None = self.at["wasm_engine_new_with_config"](config)
        if not engine:
            raise WasmFault("no engine could be made with these settings")
        return engine

    def _set(self, config: int, name: str, value: bool) -> None:
        setter = self.dll[f"wasmtime_config_{name}_set"]
        setter.argtypes, setter.restype = (c_void_p, c_bool), None
        setter(config, value)

    def functype(self, parameters: str, results: str) -> int:
        """Make a function type; each letter of the strings is a value: i for i32, I for i64."""
        kind: int = self.at["wasm_functype_new"](*(ctypes.byref(self._types(text)) for text in (parameters, results)))
        return kind

    def _types(self, types: str) -> ByteVec:
        vector = ByteVec()
        values = (c_void_p * max(len(types), 1))(*(self.at["wasm_valtype_new"]("iI".index(one)) for one in types))
        self.at["wasm_valtype_vec_new"](ctypes.byref(vector), len(types), ctypes.addressof(values))
        return vector

    def compile(self, engine: int, wasm: bytes) -> bytes:
        """Compile a module and give its machine code; only the baker does this."""
        module = c_void_p()
        self.check(self.at["wasmtime_module_new"](engine, wasm, len(wasm), ctypes.byref(module)))
        code = ByteVec()
        self.check(self.at["wasmtime_module_serialize"](module, ctypes.byref(code)))
        self.at["wasmtime_module_delete"](module)
        data = ctypes.string_at(code.data, code.size)
        self.at["wasm_byte_vec_delete"](ctypes.byref(code))
        return data

    def trap_code(self, trap: int) -> int:
        """Say which trap it was, -1 for one of ours."""
        code = c_ubyte()
        return code.value if self.at["wasmtime_trap_code"](trap, ctypes.byref(code)) else -1

    def trap_message(self, trap: int) -> str:
        """Give the trap's text, with the guest's native backtrace: for our eyes, never for a script's author."""
        message = ByteVec()
        self.at["wasm_trap_message"](trap, ctypes.byref(message))
        text = ctypes.string_at(message.data, message.size).decode("utf-8", "replace")
        self.at["wasm_byte_vec_delete"](ctypes.byref(message))
        return text


#: How raw values are seen, by their number. Made once: ctypes forgets an array type that nobody holds, and making a type in a worker
#: invalidates every lookup that the interpreter has remembered (100 page faults, seen).
_SLOTS = tuple(c_int64 * (2 * max(count, 1)) for count in range(16))


def slots(count: int) -> "type[ctypes.Array[c_int64]]":
    """Give the type that sees so many raw values, at most 15: value i is element 2*i (a value is 16 bytes wide); at least one is seen."""
    return _SLOTS[count]


__all__ = [
    "GUEST",
    "TRAP_OUT_OF_BOUNDS",
    "TRAP_OUT_OF_FUEL",
    "TRAP_STACK_OVERFLOW",
    "TRAP_UNREACHABLE",
    "UNNEEDED",
    "Callback",
    "Extern",
    "Library",
    "Switches",
    "WasmFault",
    "slots",
]
