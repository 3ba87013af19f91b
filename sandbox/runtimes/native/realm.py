"""One global scope of ``quickjs-native``: the attempt of :class:`lodger.sandbox.runtimes.js.realm.QuickRealm`, with no way to unwind.

A host that runs inside WebAssembly ends a script by a trap. Here an exception would become an error that the script can catch and go on
from, so the process itself ends when the answer has left, and at any other end.
"""

import os

from lodger.sandbox.child.channel import Disconnected
from lodger.sandbox.runtimes.answer import Over, Stopped
from lodger.sandbox.runtimes.js.guest import Thrown
from lodger.sandbox.runtimes.js.realm import QuickRealm
from lodger.sandbox.runtimes.native.guest import NativeGuest, NativeHost
from lodger.sandbox.runtimes.native.modules import NativeModules

_MISSING = "could not load module '"


class NativeRealm(QuickRealm, NativeHost):
    """One global scope, for one attempt."""

    guest: NativeGuest  # type: ignore[assignment]  # it has what the base asks of a guest
    _modules: NativeModules

    modules_type = NativeModules
    tight_percent = 50  # an array that grows asks for half as much again

    def __init__(self, guest: NativeGuest, *, rehearsal: bool = False) -> None:
        super().__init__({**guest.entries, "undefined": 0, "scratch": 0}, guest, None)  # type: ignore[arg-type]  # the same
        self._rehearsal = rehearsal

    def reseed(self) -> None:
        """Give Math.random its own state: forked twins would draw the same numbers."""
        self.guest.reseed()

    def bound(self, limits: dict[str, int]) -> None:
        """Apply the header: memory and the clock's start. CPU time is the kernel's, there is no soft stop."""
        super().bound(limits)
        self.guest.set_clock(self._epoch_us // 1000)

    def call(self, operation: int, text: bytes | None) -> bytes | None:
        """Serve the bootstrap; never raises."""
        try:
            if operation == ord("i"):
                return self._enter(text or b"")
            if operation == ord("o"):
                return b"1" if self.guest.was_deep() else b"0"
            if operation == ord("l") and text is not None:
                text = text.replace(b"\x010", b"\0").replace(b"\x011", b"\x01")
            return super().call(operation, text)
        except Over:
            self._leave(0)
        except Stopped as stop:
            self._fail(stop)
            self._leave(0)
        except MemoryError:
            self._fail(self._out_of_memory())
            self._leave(0)
        except Disconnected:
            self._leave(0)
        except BaseException:  # noqa: BLE001 - whatever it is, no script may catch it
            self._leave(72)
        return None

    def starved(self) -> None:
        """End the attempt: there was no memory left for a call of the bootstrap."""
        self._fail(self._out_of_memory())
        self._leave(0)

    def _full(self) -> bool:
        """Say whether the engine, with nothing to run now, has no room left for its next turn: then a failure may have gone unsaid."""
        if self.guest.size() * 2 < self._limits["memory_bytes"]:
            return False
        try:
            self._apply("touch", b"room")
        except Thrown:
            return True
        return False

    def _leave(self, code: int) -> None:
        if not self._rehearsal:
            os._exit(code)

    def _enter(self, way: bytes) -> bytes:
        name = b"$" + os.urandom(8).hex().encode()
        self.guest.enter(self._modules.entered(way, name))
        return name

    def uncompiled(self, said: str) -> str:
        """Give name, message and stack, each from a line of its own, of the binding's account of a file that did not compile."""
        entry = self._modules.entry.decode("utf-8", "replace")
        head, _, stack = said.replace("module '<input>'", f"module '{entry}'").partition("\n")
        name, _, message = head.partition(": ")
        if message.startswith(_MISSING):
            self._modules.note_missing(message[len(_MISSING) :].rstrip("'").encode())
        return f"{name}\n{message}\n{stack}"
