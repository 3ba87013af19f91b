"""Runtime ``quickjs-native`` with parts removed, for the matrix only; see :mod:`tests.escape.matrix.weak_quickjs`."""

import json
import time

from tests.escape.matrix import careless_birth
from tests.escape.matrix.weak_quickjs import believed

from lodger.sandbox.frames import DONE
from lodger.sandbox.runtimes import quickjs_native
from lodger.sandbox.runtimes.answer import quoted
from lodger.sandbox.runtimes.native import realm as native_realm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lodger.sandbox.runtime import Channel

_SEED = "5ac3119e702bd4685ac3119e702bd468"
_ENDLESS_STACK = 1 << 40


class WeakNativeRealm(native_realm.NativeRealm):
    """A realm without the parts that the switches name."""

    switches: "frozenset[str]" = frozenset()
    header: "dict[str, int]" = {}  # noqa: RUF012 - set once in the zygote, before any fork
    excess = 0
    unanswered: "list[int]" = []  # noqa: RUF012 - one realm, one process

    def reseed(self) -> None:
        """Seed every fork with the same numbers."""
        if "same_seed" in self.switches:
            self.guest.seed(_SEED)
        else:
            super().reseed()

    def bound(self, limits: "dict[str, int]") -> None:
        """Replace limits by the matrix's, also for the walls that are raised afterwards."""
        if self._rehearsal:
            super().bound(limits)
            return
        limits.update(self.header)
        super().bound(limits)
        if "no_engine_memory" in self.switches:
            self.guest.limit(limits["memory_bytes"] + self.excess)
        if "no_engine_stack" in self.switches:
            self.guest.context.set_max_stack_size(_ENDLESS_STACK)
        if "careless_birth" in self.switches:
            careless_birth.in_worker()

    def run(self, bundle: bytes, channel: "Channel") -> None:
        """Write the tenant's bytes into shared memory, then run."""
        if "shared_notes" in self.switches and not self._rehearsal:
            careless_birth.note(bundle)
        super().run(bundle, channel)

    def call(self, operation: int, text: "bytes | None") -> "bytes | None":
        """Carry out a call without protections: a precise clock, host frames, forged outcomes, converted values."""
        if operation == ord("c") and "fine_clock" in self.switches:
            return b"%.6f" % (time.monotonic_ns() / 1e6)
        if text is not None and operation == ord("e"):
            if "tell_all" in self.switches:
                reported = quoted(f'File "{quickjs_native.__file__}" in {self!r}: ')[:-1].encode()
                text = text.replace(b'"message":"', b'"message":' + reported, 1)
            if "believes_errors" in self.switches:
                text = believed(text)
        if text is not None and operation == ord("d") and not self._rehearsal:
            if "converts" in self.switches:
                value = self.guest.context.get("$converted")
                text = b"0 " + json.dumps(value if isinstance(value, (str, int, float, bool)) else str(value)).encode()
            if "goes_on" in self.switches:
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


class Runtime(quickjs_native.Runtime):
    """The weakened runtime."""

    def prepare(self, settings: "dict[str, str]") -> None:
        """Read the switches, then prepare as usual."""
        WeakNativeRealm.switches = frozenset(settings.get("escape_worker", "").split())
        pairs = (pair.partition("=") for pair in settings.get("escape_header", "").split())
        WeakNativeRealm.header = {name: int(value) for name, _, value in pairs}
        WeakNativeRealm.excess = int(settings.get("escape_excess", "0"))
        # a name that the module does not export; this process exists for the matrix
        setattr(quickjs_native, "NativeRealm", WeakNativeRealm)  # noqa: B010 - this process exists for the matrix
        super().prepare(settings)
        if WeakNativeRealm.switches & {"careless_birth", "careless_zygote", "shared_notes"}:
            careless_birth.in_zygote()
