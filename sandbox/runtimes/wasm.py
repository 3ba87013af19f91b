"""The runtime ``wasm`` for a tenant's WebAssembly: a WASI preview 1 command, compiled in advance, in its own worker.

There are no warm workers: the code must be made executable in the fork before the second filter denies that. It arrives as a sealed memory
file that the engine created before the fork; the zygote passes it on without reading it.
"""

from lodger.sandbox.runtimes.command.machine import ModuleMachine
from lodger.sandbox.runtimes.command.realm import ModuleRealm


class Runtime:
    """The runtime, held by the zygote."""

    name = "wasm"

    def __init__(self) -> None:
        self._machine: ModuleMachine | None = None

    def prepare(self, settings: dict[str, str]) -> None:
        """Create the engine. Settings: ``library``."""
        self._machine = ModuleMachine(settings["library"])

    def fresh(self) -> ModuleRealm:
        """Raise RuntimeError: a realm needs compiled code, see :meth:`loaded`."""
        raise RuntimeError("this runtime has no warm workers")

    def loaded(self, address: int, size: int) -> ModuleRealm:
        """Return a realm for the compiled code at an address; called in the worker before it is armed."""
        machine = self._machine
        if machine is None:
            raise RuntimeError("call prepare() first")
        module = machine.lib.deserialize(machine.engine, address, size)
        return ModuleRealm(machine, machine.joined(module))
