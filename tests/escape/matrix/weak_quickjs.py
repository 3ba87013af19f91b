"""Runtime ``quickjs`` with parts of it taken away, for the matrix only: the zygote loads this file when the suite's settings name its path.

``escape_worker`` names the switches, ``escape_header`` the numbers that the worker takes for its own instead of the parent's header,
``escape_excess`` how many bytes a lifted memory limit lies above the real one. Nothing else loads it, and no setting of a tenant's
reaches a zygote.
"""

import time
from ctypes import memmove, string_at

from tests.escape.matrix import careless_birth

from lodger.sandbox.frames import DONE
from lodger.sandbox.runtimes import quickjs
from lodger.sandbox.runtimes.answer import quoted
from lodger.sandbox.runtimes.js import modules, realm
from lodger.sandbox.runtimes.js.guest import Guest
from lodger.sandbox.runtimes.warm_up import LIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lodger.sandbox.runtime import Channel

_SEED = b"\x5a\xc3\x11\x9e\x70\x2b\xd4\x68"
_BINARY = (b"\x7fELF", b"\0asm", b"\x01\x02\x43", b"\x02")


class WeakModules(modules.Modules):
    """Modules of any bytes."""

    def check(self) -> None:
        """Take what is no text."""
        if "takes_binaries" not in WeakRealm.switches:
            super().check()


class WeakRealm(realm.QuickRealm):
    """A realm that lacks what the switches name."""

    modules_type = WeakModules
    switches: "frozenset[str]" = frozenset()
    header: "dict[str, int]" = {}  # noqa: RUF012 - set once in the zygote, before any fork
    excess = 0
    rehearsing = False
    unanswered: "list[int]" = []  # noqa: RUF012 - one realm, one process

    def reseed(self) -> None:
        """Give every fork the same randomness."""
        if "same_seed" in self.switches:
            self.guest.poke(self._numbers["seed"], _SEED)
        else:
            super().reseed()

    def bound(self, limits: "dict[str, int]") -> None:
        """Take the numbers of the matrix; the walls that rise after this see them too."""
        self.rehearsing = limits["now_us"] == LIMITS["now_us"]
        if self.rehearsing:
            super().bound(limits)
            return
        limits.update(self.header)
        if "no_fuel" in self.switches:
            limits["fuel"] = 0
        super().bound(limits)
        if "no_store_limit" in self.switches:
            self.guest.limit(limits["memory_bytes"] + self.excess)
        if "careless_birth" in self.switches:
            careless_birth.in_worker()

    def interrupted(self) -> bool:
        """Never stop."""
        return "no_soft_stop" not in self.switches and super().interrupted()

    def clock_us(self) -> int:
        """Give the fine clock."""
        return time.monotonic_ns() // 1000 if "fine_clock" in self.switches else super().clock_us()

    def run(self, bundle: bytes, channel: "Channel") -> None:
        """Leave the tenant's bytes where others find them."""
        if "shared_notes" in self.switches and not self.rehearsing:
            careless_birth.note(bundle)
        super().run(bundle, channel)

    def call(self, operation: int, text: "bytes | None") -> "bytes | None":
        """Tell in an error where we were, believe what an error says of itself, go on after the answer."""
        if text is not None and operation == ord("e"):
            if "tell_all" in self.switches:
                reported = quoted(f'File "{quickjs.__file__}" in {self!r}: ')[:-1].encode()
                text = text.replace(b'"message":"', b'"message":' + reported, 1)
            if "believes_errors" in self.switches:
                text = believed(text)
        if text is not None and operation == ord("d") and "goes_on" in self.switches and not self.rehearsing:
            assert self._channel is not None
            self._channel.send(DONE, text.partition(b" ")[2])
            return None
        return super().call(operation, text)

    def _send_call(self, number: bytes, name: bytes, json: bytes) -> None:
        super()._send_call(number, name, json)
        self.unanswered.append(int(number))

    def _receive(self) -> None:
        super()._receive()
        if "mixed_answers" in self.switches:  # whoever asked last is answered first
            self._backlog[-1] = b"%d %s" % (self.unanswered.pop(), self._backlog[-1].partition(b" ")[2])

    def resolve(self, base: bytes, wanted: bytes) -> "bytes | None":
        """Let every name through."""
        found = super().resolve(base, wanted)
        return wanted if found is None or ("open_loader" in self.switches and wanted.startswith(b"/")) else found

    def source(self, name: bytes) -> "bytes | None":
        """Read any file, and have a module for any other name."""
        found = super().source(name)
        if found is None and "open_loader" in self.switches:
            try:
                with open(name, "rb") as file:
                    return b"export default " + quoted(file.read(65536).decode("utf-8", "replace")).encode()
            except (OSError, ValueError):
                return b"export const served = true; export default 'served'"
        if found is not None and "takes_binaries" in self.switches and found.startswith(_BINARY):
            return b"export default 'ran compiled code'"
        if found is not None and "told_place" in self.switches and name == self._modules.entry:
            return b"import.meta.url = 'file://" + quickjs.__file__.encode() + b"';" + found
        return found


def believed(text: bytes) -> bytes:
    """Take an error for what it calls itself."""
    dropped, outcome, json = text.split(b" ", 2)
    for sign, named in (
        (b'"interrupted', b"cpu_limit"),
        (b'"out of memory', b"memory_limit"),
        (b"stack", b"stack_limit"),
    ):
        if b'"message":' + sign in json:
            outcome = named
    return b" ".join((dropped, outcome, json))


class Unchecked(Guest):
    """A guest whose pointers are believed."""

    def peek(self, address: int, count: int) -> bytes:
        """Copy from wherever it points."""
        return string_at(self._base + address, count)

    def poke(self, address: int, data: bytes) -> None:
        """Copy to wherever it points."""
        memmove(self._base + address, data, len(data))


class Runtime(quickjs.Runtime):
    """What the zygote loads."""

    def prepare(self, settings: "dict[str, str]") -> None:
        """Note the switches, then prepare as ever."""
        WeakRealm.switches = frozenset(settings.get("escape_worker", "").split())
        pairs = (pair.partition("=") for pair in settings.get("escape_header", "").split())
        WeakRealm.header = {name: int(value) for name, _, value in pairs}
        WeakRealm.excess = int(settings.get("escape_excess", "0"))
        # names that these modules do not export; this process exists for the matrix
        setattr(quickjs, "QuickRealm", WeakRealm)  # noqa: B010 - this process exists for the matrix
        if "unchecked_pointers" in WeakRealm.switches:
            from lodger.sandbox.runtimes.js import machine

            setattr(machine, "Guest", Unchecked)  # noqa: B010 - this process exists for the matrix
        super().prepare(settings)
        if WeakRealm.switches & {"careless_birth", "careless_zygote", "shared_notes"}:
            careless_birth.in_zygote()
