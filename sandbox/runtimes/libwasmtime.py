"""The C API of libwasmtime through ctypes: the functions that a worker needs, resolved once in the zygote.

The Python code of the wasmtime package is not imported: it makes every fork slower (9 MB of anonymous memory) and allocates on each
call. Pointers are plain integers; all calls share one array of raw values, because the callee reads its arguments first and the caller
reads the result at once.
"""

import ctypes
from ctypes import PYFUNCTYPE, c_bool, c_char_p, c_int64, c_size_t, c_ubyte, c_uint32, c_uint64, c_void_p

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Words = ctypes.Array[c_int64]

_MASK = 0xFFFFFFFF

#: Trap codes that are handled (wasmtime/trap.h).
TRAP_STACK_OVERFLOW = 0
TRAP_OUT_OF_BOUNDS = 1
TRAP_UNREACHABLE = 9

#: Maximum native stack of a module in bytes: enough that a guest of QuickJS reaches the end of its own stack first.
WASM_STACK_BYTES = 16 << 20
#: RLIMIT_STACK of a worker, of which a module may use two thirds.
STACK_BYTES = WASM_STACK_BYTES * 3 // 2

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
    "wasmtime_func_call_unchecked": (_P, (_P, _P, _P, c_size_t, _P)),
    "wasmtime_table_get": (c_bool, (_P, _P, c_uint64, _P)),
    "wasmtime_memory_data": (_P, (_P, _P)),
    "wasmtime_memory_data_size": (c_size_t, (_P, _P)),
    "wasmtime_memory_grow": (_P, (_P, _P, c_uint64, _P)),
    "wasmtime_global_get": (None, (_P, _P, _P)),
    # of tenants' modules only
    "wasmtime_module_deserialize": (_P, (_P, _P, c_size_t, _P)),
    "wasmtime_module_imports": (None, (_P, _P)),
    "wasmtime_module_exports": (None, (_P, _P)),
    "wasm_importtype_module": (_P, (_P,)),
    "wasm_importtype_name": (_P, (_P,)),
    "wasm_exporttype_name": (_P, (_P,)),
    "wasm_exporttype_type": (_P, (_P,)),
    "wasm_externtype_kind": (c_ubyte, (_P,)),
    "wasm_externtype_as_functype_const": (_P, (_P,)),
    "wasm_functype_params": (_P, (_P,)),
    "wasm_functype_results": (_P, (_P,)),
    "wasm_trap_trace": (None, (_P, _P)),
    "wasm_frame_func_index": (c_uint32, (_P,)),
    "wasm_frame_module_offset": (c_size_t, (_P,)),
    "wasmtime_frame_func_name": (_P, (_P,)),
    "wasm_frame_vec_delete": (None, (_P,)),
}

#: Disabled in every engine: proposals that neither the guest nor a command needs, to keep the attack surface small.
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
    """Features of an engine that differ from the library's defaults: names from the C API's ``wasmtime_config_…_set``."""

    def __init__(self, off: "tuple[str, ...]", on: "tuple[str, ...]" = ()) -> None:
        self.off = off
        self.on = on

    def text(self) -> str:
        """Return a description of the engine, part of the cache key of compiled code."""
        return f"stack={WASM_STACK_BYTES} off={','.join(self.off)} on={','.join(self.on)}"


#: For the engine that runs QuickJS, which uses no vector instructions.
GUEST = Switches((*UNNEEDED, "wasm_simd"))


class WasmFault(Exception):
    """libwasmtime returned an error."""


class ByteVec(ctypes.Structure):
    """wasm_byte_vec_t, and by layout every other vector of the C API."""

    _fields_ = [("size", c_size_t), ("data", c_void_p)]


class Extern(ctypes.Structure):
    """wasmtime_extern_t with the union as raw words; ``of`` is the argument of the func, memory and global calls."""

    _fields_ = [("kind", c_ubyte), ("of", c_uint64 * 3)]


class Library:
    """The functions by name, and helpers around them."""

    def __init__(self, path: str) -> None:
        self.dll = ctypes.PyDLL(path)
        self.at: dict[str, ctypes._NamedFuncPointer] = {}
        for name, (result, arguments) in _TABLE.items():
            function = self.dll[name]
            function.restype = result
            function.argtypes = arguments
            self.at[name] = function

    def bare(self, name: str, result: "Any") -> "ctypes._FuncPointer":
        """Return a function without argument types, for hot paths: argument converters make two objects per argument.

        Pointers must be passed as ctypes objects; a small int is sign-extended.
        """
        function = self.dll[name]
        function.restype = result
        return function

    def check(self, error: int | None) -> None:
        """Raise WasmFault for an error of the C API and release it."""
        if error:
            message = ByteVec()
            self.at["wasmtime_error_message"](error, ctypes.byref(message))
            text = ctypes.string_at(message.data, message.size).decode("utf-8", "replace")
            self.at["wasm_byte_vec_delete"](ctypes.byref(message))
            self.at["wasmtime_error_delete"](error)
            raise WasmFault(text)

    def engine(self, switches: "Switches") -> int:
        """Return a new engine with these settings."""
        config = self.at["wasm_config_new"]()
        for name in switches.off:
            self._set(config, name, False)
        for name in switches.on:
            self._set(config, name, True)
        for name in ("async_stack_size", "max_wasm_stack"):  # nothing runs on the first, but it bounds the second
            size = self.dll[f"wasmtime_config_{name}_set"]
            size.argtypes, size.restype = (c_void_p, c_size_t), None
            size(config, WASM_STACK_BYTES)
        engine: int | None = self.at["wasm_engine_new_with_config"](config)
        if not engine:
            raise WasmFault("no engine could be created with these settings")
        return engine

    def _set(self, config: int, name: str, value: bool) -> None:
        """Set a flag of an engine's configuration."""
        setter = self.dll[f"wasmtime_config_{name}_set"]
        setter.argtypes, setter.restype = (c_void_p, c_bool), None
        setter(config, value)

    def functype(self, parameters: str, results: str) -> int:
        """Return a new function type; each character stands for a value: i for i32, I for i64."""
        kind: int = self.at["wasm_functype_new"](*(ctypes.byref(self._types(text)) for text in (parameters, results)))
        return kind

    def _types(self, types: str) -> ByteVec:
        """Return a vector of WebAssembly value types; each character stands for one: i for i32, I for i64."""
        vector = ByteVec()
        values = (c_void_p * max(len(types), 1))(*(self.at["wasm_valtype_new"]("iI".index(one)) for one in types))
        self.at["wasm_valtype_vec_new"](ctypes.byref(vector), len(types), ctypes.addressof(values))
        return vector

    def module(self, engine: int, wasm: bytes) -> c_void_p:
        """Return a compiled module. Raises WasmFault with the compiler's text, which may contain names from the module."""
        module = c_void_p()
        self.check(self.at["wasmtime_module_new"](engine, wasm, len(wasm), ctypes.byref(module)))
        return module

    def machine_code(self, module: c_void_p) -> ByteVec:
        """Return a module's machine code; released only when the process ends."""
        code = ByteVec()
        self.check(self.at["wasmtime_module_serialize"](module, ctypes.byref(code)))
        return code

    def export(
        self, context: "int | c_void_p", instance: "ctypes.Array[c_uint64]", name: str
    ) -> "ctypes.Array[c_uint64]":
        """Return the export of an instance with this name, as the C API passes it. Raises WasmFault if there is none."""
        item, text = Extern(), name.encode()
        if not self.at["wasmtime_instance_export_get"](context, instance, text, len(text), ctypes.byref(item)):
            raise WasmFault(f"the module has no export {name}")
        address: ctypes.Array[c_uint64] = item.of
        return address

    def trap_code(self, trap: int) -> int:
        """Return the code of a trap, -1 for one raised by a host function."""
        code = c_ubyte()
        return code.value if self.at["wasmtime_trap_code"](trap, ctypes.byref(code)) else -1

    def trap_message(self, trap: int) -> str:
        """Return the trap's text with the guest's native backtrace; not to be shown to tenants."""
        message = ByteVec()
        self.at["wasm_trap_message"](trap, ctypes.byref(message))
        text = ctypes.string_at(message.data, message.size).decode("utf-8", "replace")
        self.at["wasm_byte_vec_delete"](ctypes.byref(message))
        return text


#: Array types for raw values, by count. Created once: creating a type in a worker invalidates the interpreter's lookup caches (100 page
#: faults).
_SLOTS = tuple(c_int64 * (2 * max(count, 1)) for count in range(16))


class LinkedMachine:
    """An engine with host functions for the imports of modules, created once in the zygote.

    Attributes:
        fault: exception of a host function, raised again after the native call returns.
    """

    def __init__(self, lib: Library, switches: Switches) -> None:
        self.lib = lib
        self.engine = lib.engine(switches)
        self.linker: int = lib.at["wasmtime_linker_new"](self.engine)
        self.fault: BaseException | None = None
        self._callbacks: list[object] = []

    def define(
        self, space: str, name: str, parameters: str, results: str, function: "Callable[[Words], int | None]"
    ) -> None:
        """Define an import as a function of the call's words: argument i is word 2*i, because a value has 16 bytes."""
        at, at_space, at_name = self.lib.at, space.encode(), name.encode()
        kind = self.lib.functype(parameters, results)
        callback = self._callback(function, len(parameters), bool(results))
        self._callbacks.append(callback)
        self.lib.check(
            at["wasmtime_linker_define_func_unchecked"](
                self.linker, at_space, len(at_space), at_name, len(at_name), kind, callback, None, None
            )
        )
        at["wasm_functype_delete"](kind)

    def joined(self, module: c_void_p) -> c_void_p:
        """Return the module linked with the imports. Raises WasmFault if a type differs."""
        pre = c_void_p()
        self.lib.check(self.lib.at["wasmtime_linker_instantiate_pre"](self.linker, module, ctypes.byref(pre)))
        return pre

    def _callback(self, function: "Callable[[Words], int | None]", count: int, answers: bool) -> object:
        """Return a C function that an import calls."""
        # The most frequent call between guest and host: creates no function and no list, which would cost page faults in a fork.
        trap, kind = self.lib.at["wasmtime_trap_new"], _SLOTS[count]

        def call_import(_env: int, _caller: int, address: int, _size: int) -> int | None:
            """Answer a call of an imported function by the guest; its words are at ``address``."""
            try:
                words = kind.from_address(address)
                answer = function(words)
                if answers:
                    words[0] = (answer or 0) & _MASK
            except BaseException as error:  # noqa: BLE001 - nothing may unwind through native frames
                self.fault = error
                stop: int | None = trap(b"stop", 4)
                return stop
            return None

        return Callback(call_import)
