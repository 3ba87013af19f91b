"""The realm of ``quickjs-native``: as :class:`lodger.sandbox.runtimes.js.realm.QuickRealm`, but without unwinding.

With WebAssembly, the host ends a script by a trap. Here an exception would become an error that the script can catch, so the process itself
exits after the answer was sent, and in all other cases. There is no soft CPU limit, as nothing interrupts the engine; the kernel's applies.
"""

import os

from lodger.sandbox.child.channel import Disconnected
from lodger.sandbox.runtimes.answer import Answered, Stopped
from lodger.sandbox.runtimes.js.guest import Thrown
from lodger.sandbox.runtimes.js.realm import QuickRealm
from lodger.sandbox.runtimes.native.guest import NativeGuest, NativeHostFunctions
from lodger.sandbox.runtimes.native.modules import NativeModules

_MISSING = "could not load module '"


class NativeRealm(QuickRealm, NativeHostFunctions):
    """A global scope for one attempt."""

    guest: NativeGuest  # type: ignore[assignment]  # it has the methods that the base class uses
    modules: NativeModules

    modules_type = NativeModules
    tight_percent = 50  # a growing array requests 1.5 times its memory

    def __init__(self, guest: NativeGuest, *, rehearsal: bool = False) -> None:
        super().__init__({**guest.entries, "undefined": 0, "scratch": 0}, guest)  # type: ignore[arg-type]  # the same
        self._rehearsal = rehearsal

    def reseed(self) -> None:
        """Seed Math.random: otherwise all forks would draw the same numbers."""
        self.guest.seed(self.timeline.random(16).hex())

    def call(self, operation: int, text: bytes | None) -> bytes | None:
        """Carry out a call of the bootstrap; never raises."""
        try:
            if operation == ord("i"):
                return self._enter(text or b"")
            if operation == ord("c"):
                return b"%d" % (self.timeline.now_us() // 1000)
            if operation == ord("o"):
                return b"1" if self.guest.reached_stack_limit() else b"0"
            if operation == ord("l") and text is not None:
                text = text.replace(b"\x010", b"\0").replace(b"\x011", b"\x01")
            return super().call(operation, text)
        except Answered:
            self._leave(0)
        except Stopped as stop:
            self._fail(stop)
            self._leave(0)
        except MemoryError:
            self._fail(self._out_of_memory())
            self._leave(0)
        except Disconnected:
            self._leave(0)
        except BaseException:  # noqa: BLE001 - no exception may reach the script
            self._leave(72)
        return None

    def out_of_memory(self) -> None:
        """End the attempt: there was no memory for a call of the bootstrap."""
        self._fail(self._out_of_memory())
        self._leave(0)

    def _full(self) -> bool:
        """Return whether the idle engine has no memory for its next turn, so that an error may have been lost."""
        if self.guest.size() * 2 < self._limits["memory_bytes"]:
            return False
        try:
            self._apply("touch", b"room")
        except Thrown:
            return True
        return False

    def _leave(self, code: int) -> None:
        """End the process at once, except in a rehearsal."""
        if not self._rehearsal:
            os._exit(code)

    def _enter(self, way: bytes) -> bytes:
        """Let the author's file be evaluated next; return the name of the global that it is to call with its default export."""
        name = b"$" + os.urandom(8).hex().encode()
        self.guest.enter(self.modules.entered(way, name))
        return name

    def describe_compile_error(self, said: str) -> str:
        """Return name, message and stack of a compile error, one per line, from the text of the binding."""
        entry = self.modules.entry.decode("utf-8", "replace")
        head, _, stack = said.replace("module '<input>'", f"module '{entry}'").partition("\n")
        name, _, message = head.partition(": ")
        if message.startswith(_MISSING):
            self.modules.note_missing(message[len(_MISSING) :].rstrip("'").encode())
        return f"{name}\n{message}\n{stack}"
