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
        self._machines: dict[bool, ModuleMachine] = {}

    def prepare(self, settings: dict[str, str]) -> None:
        """Create both engines, plain and metered. Settings: ``library``."""
        for fuel in (False, True):
            self._machines[fuel] = ModuleMachine(settings["library"], fuel=fuel)

    def fresh(self) -> ModuleRealm:
        """Raise RuntimeError: a realm needs compiled code, see :meth:`loaded`."""
        raise RuntimeError("this runtime has no warm workers")

    def loaded(self, address: int, size: int, *, fuel: bool) -> ModuleRealm:
        """Return a realm for the compiled code at an address; called in the worker before it is armed."""
        machine = self._machines[fuel]
        module = machine.lib.deserialize(machine.engine, address, size)
        return ModuleRealm(machine, machine.joined(module))
