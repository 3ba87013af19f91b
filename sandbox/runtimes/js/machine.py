"""A WebAssembly engine with the guest's compiled module and its thirteen host functions, without access to host resources."""

from ctypes import byref, c_void_p

from lodger.sandbox.runtimes.js.guest import Guest
from lodger.sandbox.runtimes.libwasmtime import GUEST, Library, LinkedMachine, WasmFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lodger.sandbox.runtimes.libwasmtime import Words

_MASK = 0xFFFFFFFF
_BAD_DESCRIPTOR = 8  # WASI errno EBADF

# module, name, parameters, results: i is i32, I is i64
_IMPORTS = (
    ("env", "host_call", "iiiii", "i"),
    ("env", "host_interrupt", "", "i"),
    ("env", "host_module_normalize", "iiiii", "i"),
    ("env", "host_module_load", "iii", "i"),
    ("wasi_snapshot_preview1", "random_get", "ii", "i"),
    ("wasi_snapshot_preview1", "environ_get", "ii", "i"),
    ("wasi_snapshot_preview1", "environ_sizes_get", "ii", "i"),
    ("wasi_snapshot_preview1", "clock_time_get", "iIi", "i"),
    ("wasi_snapshot_preview1", "fd_close", "i", "i"),
    ("wasi_snapshot_preview1", "fd_fdstat_get", "ii", "i"),
    ("wasi_snapshot_preview1", "fd_seek", "iIii", "i"),
    ("wasi_snapshot_preview1", "fd_write", "iiii", "i"),
    ("wasi_snapshot_preview1", "proc_exit", "i", ""),
)


class Machine(LinkedMachine):
    """An engine with the guest's compiled module and host functions, created once in the zygote."""

    def __init__(self, library: str) -> None:
        super().__init__(Library(library), GUEST)
        self.guest: Guest | None = None
        self._pre = c_void_p()
        for space, name, parameters, results in _IMPORTS:
            self.define(space, name, parameters, results, getattr(self, f"_{name}", self._refuse))

    def load(self, artefact: str) -> None:
        """Map a compiled module from a trusted file."""
        module = c_void_p()
        name = artefact.encode("utf-8", "surrogateescape")
        self.lib.check(self.lib.at["wasmtime_module_deserialize_file"](self.engine, name, byref(module)))
        self._pre = self.joined(module)

    def take(self, wasm: bytes) -> c_void_p:
        """Compile a module from its bytes, use it for instances and return it; used by the baker only."""
        module = self.lib.module(self.engine, wasm)
        self._pre = self.joined(module)
        return module

    def instance(self, memory_bytes: int) -> "Guest":
        """Return a new guest with a memory limit."""
        return Guest(self, self._pre, memory_bytes)

    # -- the host functions, one method each; argument i is word 2*i --

    def _refuse(self, _words: "Words") -> int:
        """Answer a system call that guests do not have."""
        return _BAD_DESCRIPTOR

    def _proc_exit(self, _words: "Words") -> None:
        """End the guest: it has called ``proc_exit``."""
        raise WasmFault("the guest stopped")

    def _clock_time_get(self, words: "Words") -> int:
        """Write the clock in nanoseconds."""
        guest = self._running()
        guest.poke(words[4] & _MASK, (guest.host.clock_us() * 1000).to_bytes(8, "little"))
        return 0

    def _random_get(self, words: "Words") -> int:
        """Write random bytes."""
        guest = self._running()
        guest.poke(words[0] & _MASK, guest.host.random(min(words[2] & _MASK, 65536)))
        return 0

    def _host_interrupt(self, _words: "Words") -> int:
        """Answer whether the guest must stop now."""
        return int(self._running().host.interrupted())

    def _host_module_normalize(self, words: "Words") -> int:
        """Pass the name of an imported module to the guest."""
        guest = self._running()
        base = guest.peek(words[0] & _MASK, words[2] & _MASK)
        wanted = guest.peek(words[4] & _MASK, words[6] & _MASK)
        out = words[8] & _MASK
        return guest.give(guest.host.modules.resolve(base, wanted), out)

    def _host_module_load(self, words: "Words") -> int:
        """Pass the text of a module to the guest."""
        guest = self._running()
        name, out = guest.peek(words[0] & _MASK, words[2] & _MASK), words[4] & _MASK
        return guest.give(guest.host.modules.source(name), out)

    def _host_call(self, words: "Words") -> int:
        """Carry out a call of the bootstrap and give the guest its answer."""
        # name, its length, this, number of arguments, the arguments
        guest = self._running()
        operation = guest.peek(words[0] & _MASK, 1)[0]
        text: bytes | None = b""
        if words[6] & _MASK:
            text = guest.text(int.from_bytes(guest.peek(words[8] & _MASK, 4), "little"))
        answer = guest.host.call(operation, text)
        if answer is None:
            return guest.undefined()
        return guest.string(answer)

    def _running(self) -> "Guest":
        """Return the guest that runs now; raises if there is none."""
        if self.guest is None:
            raise WasmFault("an import was called outside any guest")
        return self.guest
