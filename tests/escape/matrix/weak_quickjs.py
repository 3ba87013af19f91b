"""Runtime ``quickjs`` with parts removed, for the matrix only: loaded by a zygote of the matrix's boot program.

Settings: ``escape_worker`` names the switches, ``escape_header`` the limits that replace those of the parent's header,
``escape_excess`` the bytes by which a lifted memory limit exceeds the real one.
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
    """Modules without the checks that the switches name."""

    def check(self) -> None:
        """Accept any bytes."""
        if "takes_binaries" not in WeakRealm.switches:
            super().check()

    def resolve(self, base: bytes, wanted: bytes) -> bytes:
        """Return any name unchanged."""
        found = super().resolve(base, wanted)
        return wanted if "open_loader" in WeakRealm.switches and wanted.startswith(b"/") else found

    def source(self, name: bytes) -> "bytes | None":
        """Return the content of any file, or a module for any other name."""
        found = super().source(name)
        if found is None and "open_loader" in WeakRealm.switches:
            try:
                with open(name, "rb") as file:
                    return b"export default " + quoted(file.read(65536).decode("utf-8", "replace")).encode()
            except (OSError, ValueError):
                return b"export const served = true; export default 'served'"
        if found is not None and "takes_binaries" in WeakRealm.switches and found.startswith(_BINARY):
            return b"export default 'ran compiled code'"
        if found is not None and "told_place" in WeakRealm.switches and name == self.entry:
            return b"import.meta.url = 'file://" + quickjs.__file__.encode() + b"';" + found
        return found


class WeakRealm(realm.QuickRealm):
    """A realm without the parts that the switches name."""

    modules_type = WeakModules
    switches: "frozenset[str]" = frozenset()
    header: "dict[str, int]" = {}  # noqa: RUF012 - set once in the zygote, before any fork
    excess = 0
    rehearsing = False
    unanswered: "list[int]" = []  # noqa: RUF012 - one realm, one process

    def reseed(self) -> None:
        """Seed every fork with the same numbers."""
        if "same_seed" in self.switches:
            self.guest.poke(self._numbers["seed"], _SEED)
        else:
            super().reseed()

    def bound(self, limits: "dict[str, int]") -> None:
        """Replace limits by the matrix's, also for the walls that are raised afterwards."""
        self.rehearsing = limits["now_us"] == LIMITS["now_us"]
        if self.rehearsing:
            super().bound(limits)
            return
        limits.update(self.header)
        super().bound(limits)
        if "no_store_limit" in self.switches:
            self.guest.limit(limits["memory_bytes"] + self.excess)
        if "careless_birth" in self.switches:
            careless_birth.in_worker()

    def interrupted(self) -> bool:
        """Return False: never stop the script."""
        return "no_soft_stop" not in self.switches and super().interrupted()

    def clock_us(self) -> int:
        """Return the precise clock."""
        return time.monotonic_ns() // 1000 if "fine_clock" in self.switches else super().clock_us()

    def run(self, bundle: bytes, channel: "Channel") -> None:
        """Write the tenant's bytes into shared memory, then run."""
        if "shared_notes" in self.switches and not self.rehearsing:
            careless_birth.note(bundle)
        super().run(bundle, channel)

    def call(self, operation: int, text: "bytes | None") -> "bytes | None":
        """Carry out a call without protections: host frames in errors, forged outcomes, no end after the answer."""
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
        if "mixed_answers" in self.switches:  # the last call is answered first
            self._backlog[-1] = b"%d %s" % (self.unanswered.pop(), self._backlog[-1].partition(b" ")[2])


def believed(text: bytes) -> bytes:
    """Return an error with the outcome that its own text claims."""
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
    """A guest without bounds checks."""

    def peek(self, address: int, count: int) -> bytes:
        """Return bytes from any address."""
        return string_at(self.base + address, count)

    def poke(self, address: int, data: bytes) -> None:
        """Write bytes to any address."""
        memmove(self.base + address, data, len(data))


class Runtime(quickjs.Runtime):
    """The weakened runtime."""

    def prepare(self, settings: "dict[str, str]") -> None:
        """Read the switches, then prepare as usual."""
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
