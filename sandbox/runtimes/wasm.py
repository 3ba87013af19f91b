"""The runtime ``wasm`` for a tenant's WebAssembly: a WASI preview 1 command, compiled in advance, in its own worker.

The code must be made executable before the second filter denies that: an armed worker has loaded it from a sealed memory file, of which the
parent sends the descriptor.
"""

from lodger.sandbox.runtimes.command.machine import ModuleMachine
from lodger.sandbox.runtimes.command.realm import ModuleRealm


class Runtime:
    """The runtime, held by the zygote."""

    def __init__(self) -> None:
        self._machine: ModuleMachine | None = None

    def prepare(self, settings: dict[str, str]) -> None:
        """Create the engine. Settings: ``library``."""
        self._machine = ModuleMachine(settings["library"])

    def fresh(self) -> ModuleRealm:
        """Return a realm, which is given compiled code before it is bound."""
        if self._machine is None:
            raise RuntimeError("call prepare() first")
        return ModuleRealm(self._machine)
