"""The guest adapter of ``quickjs-native``: the methods of :class:`lodger.sandbox.runtimes.js.guest.Guest`, over the module ``_quickjs``.

The binding of quickjs-ng 0.17.0.2 truncates integers to 32 bits and strings at NUL, fails on ropes and BigInts, and gives None for
a string that no memory was left for. So only flat strings cross, in one direction through one callable and in the other as an argument,
and no value that a script made is ever converted: what JavaScript functions return to us is thrown away unseen. Its time limit
forbids callables and is lifted before errors are converted, so it is never set; time is the kernel's.
"""

import ctypes
import os
import resource

from lodger.sandbox.runtimes.js.guest import Host, Thrown
from lodger.sandbox.runtimes.native.modules import OURS_LINE
from lodger.sandbox.runtimes.native.rejections import Rejections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_DEEP_BYTES = 65536
ENTRIES = ("start", "settle", "tick", "stuck", "halted", "warm", "touch")
_NATIVE_NAMES = ("entered", "refused", "clock", "seed")


class NativeHost(Host):
    """What this guest asks of its host beside calls."""

    def uncompiled(self, said: str) -> str:
        """Give name, message and stack, each from a line of its own, of the binding's account of a file that did not compile."""
        return f"Error\n{said}\n"

    def starved(self) -> None:
        """Hear that there was no memory for a call; never raises."""


class NativeGuest:
    """One context: one global scope of JavaScript."""

    def __init__(self, engine: "ModuleType", sources: "list[str]", stack_bytes: int, stack_end: int) -> None:
        self._deepest = stack_end - stack_bytes
        self.host: Host = NativeHost()
        self.maximum = 1 << 20  # longest text that is taken out, in letters
        self._refusal: type[Exception] = engine.JSException
        self.context = engine.Context()
        self.context.set_max_stack_size(stack_bytes)
        self.context.add_callable("$host", self._asked)
        self._evaluate(_joined(sources))
        self._rejections = Rejections(engine, self.context, "$n")
        self.entries: dict[str, Any] = self._take("$lodger.host", ENTRIES)
        native = self._take("$native", _NATIVE_NAMES)
        self._entered, self._refused, self._clock, self.seed = (native[name] for name in _NATIVE_NAMES)
        self._evaluate("delete globalThis.$lodger; delete globalThis.$native; delete globalThis.$n;")
        self._wanted: bytes | None = None
        self._resident = 0
        while self.jobs():
            pass

    def _evaluate(self, text: str) -> None:
        self.context.eval(text + "\n;undefined")

    def _take(self, place: str, names: "tuple[str, ...]") -> "dict[str, Any]":
        functions = {}
        for name in names:
            self._evaluate(f"globalThis.$taken = $native.mute({place}.{name})")
            functions[name] = self.context.get("$taken")
        self._evaluate("delete globalThis.$taken")
        return functions

    # -- the host's side, named as the other adapter names it --

    def limit(self, memory_bytes: int) -> None:
        """Set what the engine may allocate, all together."""
        self._resident = _peak_bytes()
        self.context.set_memory_limit(memory_bytes)

    def size(self) -> int:
        """Give the most memory that was held since :meth:`limit`, by the kernel's figure."""
        return _peak_bytes() - self._resident if self._resident else 0

    def was_deep(self) -> bool:
        """Whether the stack has ever been used to the engine's limit: memory below that was never written is zero."""
        return any(ctypes.string_at(self._deepest, _DEEP_BYTES))

    def reseed(self) -> None:
        """Give Math.random its own state."""
        self.seed(os.urandom(16).hex())

    def set_clock(self, milliseconds: int) -> None:
        """Let the script's clock start here, now."""
        self._clock(str(milliseconds))

    def apply(self, function: "Any", message: bytes, undefined: int, scratch: int) -> None:  # noqa: ANN401 - the binding has no types
        """Call an entry of the bootstrap with a text. Raises Thrown."""
        try:
            function(message.decode())
        except self._refusal:
            raise Thrown("an entry of the bootstrap threw") from None

    def jobs(self) -> int:
        """Run promise jobs until there are none, then evaluate the author's file if the bootstrap asked for it; 0 when nothing was done."""
        done = 0
        try:
            while self.context.execute_pending_job():
                done += 1
        except self._refusal:
            raise Thrown("a job of the engine's own threw") from None
        if self._wanted is None:
            return done
        source, self._wanted = self._wanted, None
        try:
            evaluation = self.context.module(source.decode())
        except self._refusal as refused:
            assert isinstance(self.host, NativeHost)
            self._go_in(self._refused, self.host.uncompiled(str(refused)))
        else:
            self._go_in(self._entered, evaluation)
        return done + 1

    def _go_in(self, native: "Any", given: "Any") -> None:  # noqa: ANN401 - the binding has no types
        try:
            native(given)
        except self._refusal:
            raise Thrown("the way in threw: there was no memory left for it") from None

    def enter(self, source: bytes) -> None:
        """Evaluate the module at the next turn of :meth:`jobs`."""
        self._wanted = source

    # -- the guest's side --

    def _asked(self, letter: "str | None", text: "str | None") -> "str | None":
        # Must not raise: the binding would make an error of it that a script can catch.
        if letter is None or text is None:  # what the binding gives for a text that no memory was left for
            assert isinstance(self.host, NativeHost)
            self.host.starved()
            return None
        words = text.encode()
        answer = self.host.call(ord(letter), words if len(words) <= self.maximum else None)
        return None if answer is None else answer.decode()


def _joined(sources: "list[str]") -> str:
    """Give the library as one text at lines of its own: the door, the bootstrap, then the body of a function each."""
    native, bootstrap, *files = sources
    parts = ["\n" * OURS_LINE, native, "\n;globalThis.$lodger = ", bootstrap]
    for file in files:
        parts += ['\n(function ($) { "use strict";', file, "\n})(globalThis.$lodger);"]
    return "".join(parts)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
