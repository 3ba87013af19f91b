"""Compilation, imports, exports and traps of tenants' modules through libwasmtime's C API, and the settings of their engine.

The settings differ from those for QuickJS (:data:`lodger.sandbox.runtimes.libwasmtime.GUEST`): tenants' modules need vector instructions,
and must not share memory through a file or a thread.
"""

import ctypes
from ctypes import byref, c_void_p

from lodger.sandbox.runtimes.libwasmtime import UNNEEDED, ByteVec, Library, Switches

#: First bytes of a module: magic number and version 1 of the core format.
MAGIC = b"\0asm\1\0\0\0"

#: For the engine that runs tenants' modules.
COMMANDS = Switches(
    (
        *UNNEEDED,
        "shared_memory",
        "parallel_compilation",  # a worker has no threads
        "memory_init_cow",  # it would create a memfd
        "memory_may_move",
    ),
    # NaN bits are the same on every processor: they reveal nothing of the host, and runs are reproducible.
    on=("cranelift_nan_canonicalization",),
)

#: Maximum number of stack frames of a trap.
_FRAMES = 20
_NAME = 200
FUNCTION, MEMORY = 0, 3  # wasm_externkind_t


class ModuleLibrary(Library):
    """libwasmtime with methods for tenants' modules."""

    def deserialize(self, engine: int, address: int, size: int) -> c_void_p:
        """Return the module of compiled code, which must be trusted."""
        module = c_void_p()
        self.check(self.at["wasmtime_module_deserialize"](engine, address, size, byref(module)))
        return module

    def imports(self, module: c_void_p) -> "list[tuple[str, str]]":
        """Return the imports of a module: namespace and name."""
        found = self._vector("wasmtime_module_imports", module)
        at = self.at
        return [
            (self._name(at["wasm_importtype_module"](one)), self._name(at["wasm_importtype_name"](one)))
            for one in found
        ]

    def exports(self, module: c_void_p) -> "dict[str, tuple[int, str]]":
        """Return the exports of a module: kind, and for a function its numbers of parameters and results, such as ``0:0``."""
        at = self.at
        offered = {}
        for one in self._vector("wasmtime_module_exports", module):
            kind = at["wasm_exporttype_type"](one)
            number = at["wasm_externtype_kind"](kind)
            shape = ""
            if number == FUNCTION:
                function = at["wasm_externtype_as_functype_const"](kind)
                sides = (at[f"wasm_functype_{side}"](function) for side in ("params", "results"))
                shape = ":".join(str(ByteVec.from_address(side).size) for side in sides)
            offered[self._name(at["wasm_exporttype_name"](one))] = (number, shape)
        return offered

    def _vector(self, function: str, module: c_void_p) -> "list[int]":
        """Return the items of a vector that the library fills."""
        vector = ByteVec()
        self.at[function](module, byref(vector))
        return list((c_void_p * vector.size).from_address(vector.data)) if vector.size else []

    def _name(self, name: "int | None") -> str:
        """Return a name of a module as text."""
        if not name:
            return ""
        vector = ByteVec.from_address(name)
        text = ctypes.string_at(vector.data, min(vector.size, _NAME)) if vector.size else b""
        return text.decode("utf-8", "replace")

    def frames(self, trap: int) -> "list[tuple[str, int, int]]":
        """Return the stack frames of a trap, innermost first: function name or "", function index, byte offset in the module."""
        vector = ByteVec()
        self.at["wasm_trap_trace"](trap, byref(vector))
        if not vector.size:
            return []
        at = self.at
        found = [
            (
                self._name(at["wasmtime_frame_func_name"](frame)),
                at["wasm_frame_func_index"](frame),
                at["wasm_frame_module_offset"](frame),
            )
            for frame in (c_void_p * vector.size).from_address(vector.data)[:_FRAMES]
        ]
        at["wasm_frame_vec_delete"](byref(vector))
        return found
