"""Runtime ``wasm`` and its compiler with parts removed, for the matrix only; see :mod:`tests.escape.matrix.weak_quickjs`.

Both zygotes of the pool load this file; the setting ``runtime`` selects the real runtime.
"""

import os
import sys
import time
from ctypes import byref, c_void_p, memmove, string_at
from struct import pack

from tests.escape.matrix import careless_birth

from lodger.sandbox.runtimes import wasm, wasm_compiler
from lodger.sandbox.runtimes.command import machine as module_machine
from lodger.sandbox.runtimes.command import realm as module_realm
from lodger.sandbox.runtimes.command import wasi
from lodger.sandbox.runtimes.command.wasm_engine import COMMANDS
from lodger.sandbox.runtimes.libwasmtime import Switches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lodger.sandbox.runtimes.answer import Stopped

_FOLDER = 3
_OFFSET = 100  # the worker's own descriptors begin at 0, where a command has its streams
_MAX_TABLE = 1 << 24
#: Proposals that the weakened engine enables.
_SWITCHED_ON = (
    "wasm_threads", "wasm_tail_call", "wasm_function_references", "wasm_gc", "gc_support", "wasm_relaxed_simd",
    "wasm_multi_memory", "wasm_memory64", "wasm_wide_arithmetic", "wasm_exceptions", "wasm_custom_page_sizes",
    "wasm_stack_switching", "shared_memory",
)  # fmt: skip


class Weak:
    """Switches of this process."""

    switches: "frozenset[str]" = frozenset()
    header: "dict[str, int]" = {}  # noqa: RUF012 - set once in the zygote, before any fork
    excess = 0

    @classmethod
    def noted(cls, settings: "dict[str, str]") -> None:
        """Read the switches from the zygote's settings."""
        cls.switches = frozenset(settings.get("escape_worker", "").split())
        pairs = (pair.partition("=") for pair in settings.get("escape_header", "").split())
        cls.header = {name: int(value) for name, _, value in pairs}
        cls.excess = int(settings.get("escape_excess", "0"))
        off, on = COMMANDS.off, COMMANDS.on
        if "proposals" in cls.switches:
            off, on = tuple(name for name in off if name not in _SWITCHED_ON), (*on, *_SWITCHED_ON)
        if "any_nan" in cls.switches:
            on = ()
        setattr(module_machine, "COMMANDS", Switches(off, on))  # noqa: B010 - this process exists for the matrix
        if "any_import" in cls.switches:
            setattr(module_machine.ModuleMachine, "examine", lambda _machine, _module: None)  # noqa: B010 - this process exists for the matrix
            setattr(module_machine.ModuleMachine, "joined", _joined)  # noqa: B010 - this process exists for the matrix
        if "takes_binaries" in cls.switches:
            setattr(wasm_compiler.CompilerRealm, "run", _passed_on)  # noqa: B010 - this process exists for the matrix


def _joined(machine: "module_machine.ModuleMachine", module: c_void_p) -> c_void_p:
    """Link the module with an empty function for every unknown import."""
    lib = machine.lib
    define = lib.dll["wasmtime_linker_define_unknown_imports_as_default_values"]
    define.argtypes, define.restype = (c_void_p, c_void_p, c_void_p), c_void_p
    store = lib.at["wasmtime_store_new"](machine.engine, None, None)
    lib.check(define(machine.linker, lib.at["wasmtime_store_context"](store), module))
    pre = c_void_p()
    lib.check(lib.at["wasmtime_linker_instantiate_pre"](machine.linker, module, byref(pre)))
    return pre


def _passed_on(realm: "wasm_compiler.CompilerRealm", bundle: bytes, channel: "Any") -> None:
    """Pass a tenant's machine code on without compiling."""
    from lodger.sandbox.frames import ARTEFACT, DONE

    step = realm.limits["frame_bytes"]
    for at in range(0, len(bundle), step):
        channel.send(ARTEFACT, bundle[at : at + step])
    channel.send(DONE, b"%d" % len(bundle))


class WeakWasi(wasi.Wasi):
    """WASI with arguments, an environment and a preopened folder."""

    def answer(self, name: str, arguments: "list[int]") -> int:
        """Carry out the calls that the switches add, others as usual."""
        if "arguments" in Weak.switches and name in _CONSTANTS:
            return int(_CONSTANTS[name](self._behind(), *arguments))
        if "opened" in Weak.switches and name in _OPENED and (name == "path_open" or arguments[0] >= _FOLDER):
            return int(_OPENED[name](self._behind(), *arguments))
        if "fine_clock" in Weak.switches and name == "clock_time_get":
            self._behind().poke(arguments[2], pack("<Q", time.monotonic_ns()))
            return wasi.SUCCESS
        return super().answer(name, arguments)


def _one(command: "Any", count: int, size: int) -> int:
    command.poke(count, pack("<I", 1))
    command.poke(size, pack("<I", len(_secret())))
    return wasi.SUCCESS


def _secret() -> bytes:
    return b"PYTHON=" + sys.executable.encode() + b"\0"


def _listed(command: "Any", table: int, text: int) -> int:
    command.poke(table, pack("<I", text))
    command.poke(text, _secret())
    return wasi.SUCCESS


def _prestat(command: "Any", _descriptor: int, out: int) -> int:
    command.poke(out, pack("<II", 0, 1))
    return wasi.SUCCESS


def _directory(command: "Any", _descriptor: int, out: int, _size: int) -> int:
    command.poke(out, b"/")
    return wasi.SUCCESS


def _open(command: "Any", *arguments: int) -> int:
    _folder, _lookup, at, size, _flags, _rights, _inherit, _more, out = arguments
    try:
        found = os.open(b"/" + command.peek(at, size).lstrip(b"/"), os.O_RDONLY)
    except OSError as problem:
        return wasi.BADF if problem.errno is None else 44
    command.poke(out, pack("<I", _OFFSET + found))
    return wasi.SUCCESS


def _read(command: "Any", descriptor: int, at: int, count: int, out: int) -> int:
    total = 0
    for index in range(count):
        address, size = (int.from_bytes(command.peek(at + 8 * index + 4 * half, 4), "little") for half in (0, 1))
        data = os.read(descriptor - _OFFSET, size)
        command.poke(address, data)
        total += len(data)
    command.poke(out, pack("<I", total))
    return wasi.SUCCESS


def _stat(command: "Any", _descriptor: int, out: int) -> int:
    command.poke(out, pack("<B7xQQ", 3, (1 << 64) - 1, (1 << 64) - 1))
    return wasi.SUCCESS


_CONSTANTS: "dict[str, Any]" = {
    "args_sizes_get": _one,
    "environ_sizes_get": _one,
    "args_get": _listed,
    "environ_get": _listed,
}
_OPENED: "dict[str, Any]" = {
    "fd_prestat_get": _prestat,
    "fd_prestat_dir_name": _directory,
    "fd_fdstat_get": _stat,
    "path_open": _open,
    "fd_read": _read,
}


class WeakModuleRealm(module_realm.ModuleRealm):
    """A realm without the parts that the switches name."""

    def bound(self, limits: "dict[str, int]") -> None:
        """Replace limits by the matrix's, also for the walls that are raised afterwards."""
        limits.update(Weak.header)
        super().bound(limits)
        memory = limits["memory_bytes"] + (Weak.excess if "no_store_limit" in Weak.switches else 0)
        elements = _MAX_TABLE if "no_table_limit" in Weak.switches else module_realm.TABLE_ELEMENTS
        tables = 10_000 if "no_table_limit" in Weak.switches else module_realm.TABLES
        if Weak.switches & {"no_store_limit", "no_table_limit", "proposals"}:
            memories = 8 if "proposals" in Weak.switches else 1
            limiter = self._machine.lib.at["wasmtime_store_limiter"]
            limiter(self._store, memory, elements, 1, tables, memories)
        if "careless_birth" in Weak.switches:
            careless_birth.in_worker()

    def run(self, bundle: bytes, channel: "Any") -> None:
        """Write the tenant's bytes into shared memory, then run."""
        if "shared_notes" in Weak.switches:
            careless_birth.note(bundle)
        super().run(bundle, channel)

    def _fail(self, stop: "Stopped") -> None:
        if "tell_all" in Weak.switches:
            stop.message = f'File "{module_realm.__file__}" in {self!r}: {stop.message}'
        super()._fail(stop)

    def peek(self, address: int, count: int) -> bytes:
        """Return bytes from any address."""
        return (
            string_at(self._base + address, count)
            if "unchecked_pointers" in Weak.switches
            else super().peek(address, count)
        )

    def poke(self, address: int, data: bytes) -> None:
        """Write bytes to any address."""
        if "unchecked_pointers" in Weak.switches:
            memmove(self._base + address, data, len(data))
        else:
            super().poke(address, data)


class Runtime:
    """The weakened runtime or compiler."""

    def __init__(self) -> None:
        self._real: Any = None

    def prepare(self, settings: "dict[str, str]") -> None:
        """Read the switches, then prepare the runtime in the settings."""
        Weak.noted(settings)
        if settings["runtime"] == "wasm_compiler":
            self._real = wasm_compiler.Runtime()
        else:
            setattr(wasm, "ModuleRealm", WeakModuleRealm)  # noqa: B010 - this process exists for the matrix
            setattr(module_machine, "Wasi", WeakWasi)  # noqa: B010 - this process exists for the matrix
            self._real = wasm.Runtime()
        self._real.prepare(settings)
        if Weak.switches & {"careless_birth", "careless_zygote", "shared_notes"}:
            careless_birth.in_zygote()

    def fresh(self) -> "Any":
        """Return the real runtime's realm."""
        return self._real.fresh()
