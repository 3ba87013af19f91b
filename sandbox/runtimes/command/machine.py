"""A WebAssembly engine with a linker for WASI, created once in the zygote and used for one module in each fork."""

from lodger.sandbox.runtimes.command.wasi import SIGNATURES, SPACE, Wasi, unsigned
from lodger.sandbox.runtimes.command.wasm_engine import COMMANDS, FUNCTION, MEMORY, ModuleLibrary
from lodger.sandbox.runtimes.libwasmtime import LinkedMachine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from ctypes import c_void_p

    from lodger.sandbox.runtimes.libwasmtime import Words


class Unsuitable(Exception):
    """A module is valid WebAssembly but not a WASI command."""


class ModuleMachine(LinkedMachine):
    """An engine with the host functions of WASI, used for one module in each fork.

    Attributes:
        wasi: the WASI calls; the running attempt is assigned to its ``command``.
    """

    lib: ModuleLibrary

    def __init__(self, library: str) -> None:
        super().__init__(ModuleLibrary(library), COMMANDS)
        self.wasi = Wasi()
        for name, (parameters, results) in SIGNATURES.items():
            self.define(SPACE, name, parameters, results, self._call(name, parameters))

    def _call(self, name: str, parameters: str) -> "Callable[[Words], int | None]":
        """Return the function that answers a WASI function by the words of a call."""
        answer, count = self.wasi.answer, len(parameters)
        return lambda words: answer(name, unsigned(parameters, [words[2 * index] for index in range(count)]))

    def examine(self, module: "c_void_p") -> None:
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
