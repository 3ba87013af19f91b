"""A WebAssembly engine with a linker for WASI, created once in the zygote and used for one module in each fork."""

from ctypes import byref, c_void_p

from lodger.sandbox.runtimes.command.wasi import SIGNATURES, SPACE, Wasi, unsigned
from lodger.sandbox.runtimes.command.wasm_engine import COMMANDS, FUNCTION, MEMORY, ModuleLibrary
from lodger.sandbox.runtimes.libwasmtime import Callback, slots


class Unsuitable(Exception):
    """A module is valid WebAssembly but not a WASI command."""


class ModuleMachine:
    """An engine with the host functions of WASI.

    Attributes:
        wasi: the WASI calls; the running attempt is assigned to its ``command``.
        fault: exception of a host function, raised again after the native call returns.
    """

    def __init__(self, library: str) -> None:
        self.lib = ModuleLibrary(library)
        self.engine = self.lib.engine(COMMANDS)
        self.wasi = Wasi()
        self.fault: BaseException | None = None
        self._callbacks: list[object] = []
        self.linker = self._link()

    def _link(self) -> int:
        """Define the imports of modules; return the linker."""
        at = self.lib.at
        linker: int = at["wasmtime_linker_new"](self.engine)
        space = SPACE.encode()
        for name, (parameters, results) in SIGNATURES.items():
            kind = self.lib.functype(parameters, results)
            callback = self._callback(name, parameters, bool(results))
            self._callbacks.append(callback)
            text = name.encode()
            self.lib.check(
                at["wasmtime_linker_define_func_unchecked"](
                    linker, space, len(space), text, len(text), kind, callback, None, None
                )
            )
            at["wasm_functype_delete"](kind)
        return linker

    def _callback(self, name: str, parameters: str, answers: bool) -> object:
        """Return a C function that an import calls."""
        trap = self.lib.at["wasmtime_trap_new"]
        count = len(parameters)
        kind = slots(count)

        def call_import(_env: int, _caller: int, address: int, _size: int) -> int | None:
            """Answer a call of a WASI function by the module; its words are at ``address``."""
            try:
                values = kind.from_address(address)
                answer = self.wasi.answer(name, unsigned(parameters, [values[2 * index] for index in range(count)]))
                if answers:
                    values[0] = answer
            except BaseException as error:  # noqa: BLE001 - nothing may unwind through native frames
                self.fault = error
                stop: int = trap(b"stop", 4)
                return stop
            return None

        return Callback(call_import)

    def examine(self, module: c_void_p) -> None:
        """Check that a module is a command. Raises Unsuitable; the text may contain names from the module."""
        missing = [
            f"{space}.{name}" for space, name in self.lib.imports(module) if space != SPACE or name not in SIGNATURES
        ]
        if missing:
            more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
            raise Unsuitable(
                f"the module imports functions that do not exist here: {', '.join(missing[:8])}{more}; "
                f"only {SPACE} (WASI preview 1) exists"
            )
        offered = self.lib.exports(module)
        if offered.get("_start") != (FUNCTION, "0:0"):
            raise Unsuitable(
                "the module exports no function _start without parameters and results; build it as a WASI command"
            )
        if offered.get("memory", (-1, ""))[0] != MEMORY:
            raise Unsuitable('the module exports no memory named "memory", which WASI requires')

    def joined(self, module: c_void_p) -> c_void_p:
        """Return the module linked with the imports. Raises WasmFault if a type differs."""
        pre = c_void_p()
        self.lib.check(self.lib.at["wasmtime_linker_instantiate_pre"](self.linker, module, byref(pre)))
        return pre
