"""Runtime ``quickjs`` with parts of it taken away, for the matrix only: the zygote loads this file when the suite's settings name its path.

``escape_worker`` names the switches, ``escape_header`` the numbers that the worker takes for its own instead of the parent's header.
Nothing else loads it, and no setting of a tenant's reaches a zygote.
"""

import time

from lodger.sandbox.runtimes import quickjs, realm
from lodger.sandbox.runtimes.answer import quoted

_EVERYTHING = (1 << 32) - 1
_SEED = b"\x5a\xc3\x11\x9e\x70\x2b\xd4\x68"


class WeakRealm(realm.QuickRealm):
    """A realm that lacks what the switches name."""

    switches: "frozenset[str]" = frozenset()
    header: "dict[str, int]" = {}  # noqa: RUF012 - set once in the zygote, before any fork

    def reseed(self) -> None:
        """Give every fork the same randomness."""
        if "same_seed" in self.switches:
            self.guest.poke(self._numbers["seed"], _SEED)
        else:
            super().reseed()

    def bound(self, limits: "dict[str, int]") -> None:
        """Take the numbers of the matrix; the walls that rise after this see them too."""
        limits.update(self.header)
        super().bound(limits)
        if "no_store_limit" in self.switches:
            self.guest.limit(_EVERYTHING)

    def interrupted(self) -> bool:
        """Never stop."""
        return "no_soft_stop" not in self.switches and super().interrupted()

    def clock_us(self) -> int:
        """Give the fine clock."""
        return time.monotonic_ns() // 1000 if "fine_clock" in self.switches else super().clock_us()

    def call(self, operation: int, text: "bytes | None") -> "bytes | None":
        """Tell in an error where we were, in our own language."""
        if operation == ord("e") and "tell_all" in self.switches and text is not None:
            told = quoted(f'File "{quickjs.__file__}" in {self!r}: ')[:-1].encode()
            text = text.replace(b'"message":"', b'"message":' + told, 1)
        return super().call(operation, text)

    def resolve(self, base: bytes, wanted: bytes) -> "bytes | None":
        """Let every name through."""
        found = super().resolve(base, wanted)
        return wanted if found is None or ("open_loader" in self.switches and wanted.startswith(b"/")) else found

    def source(self, name: bytes) -> "bytes | None":
        """Read any file, and have a module for any other name."""
        found = super().source(name)
        if found is None and "open_loader" in self.switches:
            try:
                with open(name, "rb") as file:  # noqa: PTH123 - imports nothing in a worker
                    return b"export default " + quoted(file.read(65536).decode("utf-8", "replace")).encode()
            except (OSError, ValueError):
                return b"export const served = true"
        return found


class Runtime(quickjs.Runtime):
    """What the zygote loads."""

    def prepare(self, settings: "dict[str, str]") -> None:
        """Note the switches, then prepare as ever."""
        WeakRealm.switches = frozenset(settings.get("escape_worker", "").split())
        pairs = (pair.partition("=") for pair in settings.get("escape_header", "").split())
        WeakRealm.header = {name: int(value) for name, _, value in pairs}
        setattr(quickjs, "QuickRealm", WeakRealm)  # noqa: B010 - a name that the module does not export; this process exists for the matrix
        super().prepare(settings)
