"""The runtime ``wasm_compiler``: compiles a tenant's module in a worker, so that compiler bugs and slow modules do not affect the engine.

The result is machine code in ARTEFACT frames. A module that took over this worker could forge it, and so control the workers of its own
tenant's runs, as it does anyway. Compiled code is therefore never shared between tenants.
"""

import ctypes

from lodger.sandbox.frames import ARTEFACT, DONE, FAIL
from lodger.sandbox.runtimes.answer import quoted
from lodger.sandbox.runtimes.command.machine import ModuleMachine, Unsuitable
from lodger.sandbox.runtimes.command.wasm_engine import MAGIC
from lodger.sandbox.runtimes.libwasmtime import WasmFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lodger.sandbox.runtime import Channel

#: A minimal command, compiled in the zygote so that the compiler's tables are built before the fork.
_REHEARSAL = MAGIC + bytes.fromhex(
    "01040160 0000 03020100 0503010001 0713 02 066d656d6f7279 0200 065f7374617274 0000 0a04010200 0b"
)
_MAX_TEXT = 2000
_CAUSE = "Caused by:"


class CompilerRealm:
    """Realm that compiles one module."""

    def __init__(self, machine: ModuleMachine) -> None:
        self._machine = machine
        self.limits: dict[str, int] = {}

    def bound(self, limits: dict[str, int]) -> None:
        """Store the limits."""
        self.limits = limits

    def replay(self, _trace: bytes) -> None:
        """Ignore the trace: a compiler reads no clock."""

    def run(self, bundle: bytes, channel: "Channel") -> None:
        """Compile the module in the bundle; answer with ARTEFACT frames and DONE, or with FAIL."""
        try:
            _check_start(bundle)
            machine = self._machine
            module = machine.lib.module(machine.engine, bundle)
            machine.examine(module)
            machine.joined(module)
        except (WasmFault, Unsuitable) as refused:
            text = "; ".join(
                line.strip() for line in str(refused)[:_MAX_TEXT].split("\n") if line.strip() not in ("", _CAUSE)
            )
            body = f'{{"name":"CompileError","message":{quoted(text)}}}'.encode()
            channel.answer(FAIL, b"\x0dcompile_error" + body)
            return
        code = machine.lib.machine_code(module)
        step = self.limits["frame_bytes"]
        for at in range(0, code.size, step):
            channel.send(ARTEFACT, ctypes.string_at(code.data + at, min(step, code.size - at)))
        channel.answer(DONE, b"%d" % code.size)


def _check_start(bundle: bytes) -> None:
    """Raise Unsuitable if the first bytes are not those of a WebAssembly module."""
    if bundle[:4] != MAGIC[:4]:
        raise Unsuitable("this is not WebAssembly: the file does not begin with the bytes 00 61 73 6d")
    if bundle[4:8] == b"\x0d\0\1\0":
        raise Unsuitable("this is a WebAssembly component: only core modules (WASI preview 1 commands) are supported")
    if bundle[4:8] != MAGIC[4:]:
        raise Unsuitable("this is not a WebAssembly module of version 1")


class Runtime:
    """The runtime, held by the zygote."""

    def __init__(self) -> None:
        self._machine: ModuleMachine | None = None

    def prepare(self, settings: dict[str, str]) -> None:
        """Create the engine and compile a minimal module. Settings: ``library``."""
        machine = self._machine = ModuleMachine(settings["library"])
        machine.lib.machine_code(machine.lib.module(machine.engine, _REHEARSAL))

    def fresh(self) -> CompilerRealm:
        """Return a realm that compiles one module."""
        if self._machine is None:
            raise RuntimeError("call prepare() first")
        return CompilerRealm(self._machine)
