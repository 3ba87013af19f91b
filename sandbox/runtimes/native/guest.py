"""The guest adapter of ``quickjs-native``: the methods of :class:`lodger.sandbox.runtimes.js.guest.Guest`, over the module ``_quickjs``.

The binding of quickjs-ng 0.17.0.2 truncates integers to 32 bits and strings at NUL, fails on ropes and BigInts, and returns None for
a string when memory is exhausted. So only flat strings are exchanged: out through one callable, in as an argument. No value that a script
created is converted; return values of JavaScript functions are ignored. The binding's time limit excludes callables, so it is not used; the
kernel limits the time.
"""

import ctypes
import resource

from lodger.sandbox.runtimes.js.guest import HostFunctions, Thrown
from lodger.sandbox.runtimes.native.modules import OURS_LINE
from lodger.sandbox.runtimes.native.rejections import Rejections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_DEEP_BYTES = 65536
ENTRIES = ("start", "settle", "tick", "stuck", "halted", "warm", "touch")
_NATIVE_NAMES = ("entered", "refused", "seed")


class NativeHostFunctions(HostFunctions):
    """The host of this guest."""

    def describe_compile_error(self, said: str) -> str:
        """Return name, message and stack of a compile error, one per line, from the text of the binding."""
        return f"Error\n{said}\n"

    def out_of_memory(self) -> None:
        """Handle a call for which there was no memory; never raises."""


class NativeGuest:
    """One context: one global scope of JavaScript."""

    def __init__(self, engine: "ModuleType", sources: "list[str]", stack_bytes: int, stack_end: int) -> None:
        self._deepest = stack_end - stack_bytes
        self.host: HostFunctions = NativeHostFunctions()
        self.maximum = 1 << 20  # longest text that is copied out, in bytes
        self._refusal: type[Exception] = engine.JSException
        self.context = engine.Context()
        self.context.set_max_stack_size(stack_bytes)
        self.context.add_callable("$host", self._host_call)
        self._evaluate(_join_sources(sources))
        self._rejections = Rejections(engine, self.context, "$n")
        self.entries: dict[str, Any] = self._take("$lodger.host", ENTRIES)
        native = self._take("$native", _NATIVE_NAMES)
        self._entered, self._refused, self.seed = (native[name] for name in _NATIVE_NAMES)
        self._evaluate("delete globalThis.$lodger; delete globalThis.$native; delete globalThis.$n;")
        self._pending_source: bytes | None = None
        self._resident = 0
        while self.jobs():
            pass

    def _evaluate(self, text: str) -> None:
        """Evaluate JavaScript in the engine."""
        self.context.eval(text + "\n;undefined")

    def _take(self, place: str, names: "tuple[str, ...]") -> "dict[str, Any]":
        """Return functions of a JavaScript object by name, wrapped so that they return nothing."""
        functions = {}
        for name in names:
            self._evaluate(f"globalThis.$taken = $native.mute({place}.{name})")
            functions[name] = self.context.get("$taken")
        self._evaluate("delete globalThis.$taken")
        return functions

    # -- methods called by the host, named as in the other adapter --

    def limit(self, memory_bytes: int) -> None:
        """Set the memory limit of the engine."""
        self._resident = _peak_bytes()
        self.context.set_memory_limit(memory_bytes)

    def size(self) -> int:
        """Return the peak memory since :meth:`limit`, as counted by the kernel."""
        return _peak_bytes() - self._resident if self._resident else 0

    used = size

    def reached_stack_limit(self) -> bool:
        """Return whether the stack was ever used down to the engine's limit: unwritten memory there is zero."""
        return any(ctypes.string_at(self._deepest, _DEEP_BYTES))

    def apply(self, function: "Any", message: bytes, undefined: int, scratch: int) -> None:
        """Call an entry point of the bootstrap with a text. Raises Thrown."""
        try:
            function(message.decode())
        except self._refusal:
            raise Thrown("an entry of the bootstrap threw") from None

    def jobs(self) -> int:
        """Run all promise jobs, then evaluate the author's file if the bootstrap requested it. Return 0 if nothing was done."""
        done = 0
        try:
            while self.context.execute_pending_job():
                done += 1
        except self._refusal:
            raise Thrown("an internal job of the engine threw") from None
        if self._pending_source is None:
            return done
        source, self._pending_source = self._pending_source, None
        try:
            evaluation = self.context.module(source.decode())
        except self._refusal as refused:
            assert isinstance(self.host, NativeHostFunctions)
            self._call_native(self._refused, self.host.describe_compile_error(str(refused)))
        else:
            self._call_native(self._entered, evaluation)
        return done + 1

    def _call_native(self, native: "Any", given: "Any") -> None:
        """Call a function of the engine; raises Thrown if there was no memory for it."""
        try:
            native(given)
        except self._refusal:
            raise Thrown("the call into the guest threw: not enough memory") from None

    def enter(self, source: bytes) -> None:
        """Let the next call of :meth:`jobs` evaluate the module."""
        self._pending_source = source

    # -- called by the guest --

    def _host_call(self, letter: "str | None", text: "str | None") -> "str | None":
        """Carry out a call of the bootstrap: a letter names the operation."""
        # Must not raise: the binding would turn it into an error that a script can catch.
        if letter is None or text is None:  # the binding had no memory for a text
            assert isinstance(self.host, NativeHostFunctions)
            self.host.out_of_memory()
            return None
        words = text.encode()
        answer = self.host.call(ord(letter), words if len(words) <= self.maximum else None)
        return None if answer is None else answer.decode()


def _join_sources(sources: "list[str]") -> str:
    """Return the library as one text, at its own line numbers: native.js, the bootstrap, then one function per file."""
    native, bootstrap, *files = sources
    parts = ["\n" * OURS_LINE, native, "\n;globalThis.$lodger = ", bootstrap]
    for file in files:
        parts += [
            '\n(function ($, module) { "use strict";',
            file,
            "\n})(globalThis.$lodger, globalThis.$lodger.module);",
        ]
    return "".join(parts)


def _peak_bytes() -> int:
    """Return the peak of this process's resident memory in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
