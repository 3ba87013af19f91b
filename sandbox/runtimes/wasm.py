"""The runtime for a tenant's own WebAssembly: a WASI preview 1 command, compiled beforehand, in a worker of its own.

There is no warm worker to give it: machine code must become executable once, in the fork, before the second filter ends that for
good. The compiled code comes as a sealed memory file that the engine made before the fork; the zygote passes it on unread.
"""

from lodger.sandbox.runtimes.command.machine import ModuleMachine
from lodger.sandbox.runtimes.command.realm import ModuleRealm


class Runtime:
    """The runtime as the zygote holds it."""

    name = "wasm"

    def __init__(self) -> None:
        self._machines: dict[bool, ModuleMachine] = {}

    def prepare(self, settings: dict[str, str]) -> None:
        """Make both engines, plain and metered. Settings: ``library``."""
        for fuel in (False, True):
            self._machines[fuel] = ModuleMachine(settings["library"], fuel=fuel)

    def fresh(self) -> ModuleRealm:
        """There is nothing to run without compiled code."""
        raise RuntimeError("this runtime has no warm workers")

    def loaded(self, address: int, size: int, *, fuel: bool) -> ModuleRealm:
        """Make a realm of compiled code at an address, in the worker, while pages may still become executable."""
        machine = self._machines[fuel]
        module = machine.lib.deserialize(machine.engine, address, size)
        return ModuleRealm(machine, machine.joined(module))
