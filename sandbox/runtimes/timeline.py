"""Clock and randomness of one attempt: everything that a script sees of them, so that a second run can see the same.

The clock runs in whole milliseconds, too coarse for side channels. What a script saw of it is a trace: how many reads
returned a value before the next one, and the order of answers and rings of a timer. A replay reads a trace instead of
the clock, and never waits for a timer. All randomness is drawn from the seed of the job's header.
"""

import os
import time
from _blake2 import blake2b  # hashlib would load OpenSSL into the zygote

from lodger.sandbox.frames import CHANGE, END, GOT, MAX_TRACE_BYTES, RANG, SEED_FIELDS, TRACE, TRACE_ENTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lodger.sandbox.runtime import Channel

_BLOCK = 64
_MAX_READS = 0xFFFFFFFF
#: After the end of a trace, a replay's clock advances by a millisecond at every so many reads: a loop that waits for it ends.
_READS_A_MS = 1000


class Timeline:
    """The clock and the random numbers of one attempt."""

    def __init__(self) -> None:
        self._base_ms = 0
        self._offset_us = 0
        self._start = time.monotonic_ns()
        self._ms = 0  # the last value that was seen, counted from the base
        self._reads = 0  # since then
        self._trace = bytearray()
        self._room = MAX_TRACE_BYTES
        self._entries: list[tuple[int, int, int]] | None = None  # of a replay, in reverse order
        self._wall_ms = 0
        self._seed = b""
        self._blocks = 0

    def begin(self, limits: dict[str, int]) -> None:
        """Start the clock where the header says, and take its seed; without one, randomness stays the kernel's."""
        now_us = limits["now_us"] or time.time_ns() // 1000
        self._base_ms, self._offset_us = divmod(now_us, 1000)
        self._start = time.monotonic_ns()
        self._wall_ms = limits["wall_ms"]
        words = [limits[name] for name in SEED_FIELDS]
        if any(words):
            self._seed = b"".join(word.to_bytes(8, "little", signed=True) for word in words)

    @property
    def seeded(self) -> bool:
        """Whether the header had a seed."""
        return bool(self._seed)

    def random(self, count: int) -> bytes:
        """Return the next random bytes; those of the kernel before :meth:`begin`."""
        if not self._seed:
            return os.urandom(count)
        parts = []
        for _ in range(-(-count // _BLOCK)):
            self._blocks += 1
            parts.append(blake2b(self._blocks.to_bytes(8, "little"), key=self._seed, digest_size=_BLOCK).digest())
        return b"".join(parts)[:count]

    # the clock

    def replay(self, trace: bytes) -> None:
        """Read this trace from now on, instead of the clock; the replay ends where the trace is invalid."""
        size = len(trace) // TRACE_ENTRY.size * TRACE_ENTRY.size
        self._entries = [*TRACE_ENTRY.iter_unpack(trace[:size])][::-1]

    @property
    def replays(self) -> bool:
        """Whether a trace is read instead of the clock."""
        return self._entries is not None

    def now_us(self) -> int:
        """Return the clock in microseconds since 1970, in whole milliseconds."""
        return (self._base_ms + self.elapsed_ms()) * 1000

    def elapsed_ms(self) -> int:
        """Return the clock's milliseconds since the start."""
        if self._entries is not None:
            return self._replayed_ms(self._entries)
        ms = self._real_ms()
        if ms != self._ms:
            self._note(CHANGE, ms)
        self._reads += 1
        return ms

    def wait_ms(self, until_us: int) -> int:
        """Return how long to wait for a frame before a timer of this instant may ring, for :meth:`rings`."""
        return max(0, until_us // 1000 - self._base_ms - self._real_ms())

    def rings(self, until_us: int, *, pending: bool, channel: "Channel") -> bool:
        """Return whether a timer rings now, after no frame came; the clock is then at its instant at least.

        A replay rings where its trace says. After the trace it rings at once if no answer is awaited, but never beyond the
        limit of wall time: there the parent ends it.
        """
        due_ms = until_us // 1000 - self._base_ms
        if self._entries is None:
            ms = self._real_ms()
            if ms < due_ms:
                return False
            self._note(RANG, ms)
            return True
        if self._next() == RANG:
            self._ms = max(self._entries.pop()[2], due_ms)
            return True
        if pending:
            return False
        if due_ms > self._wall_ms:
            channel.wait(1 << 30)
            return False
        self._ms = max(self._ms, due_ms)
        return True

    def got(self) -> None:
        """Note that an answer came while a timer was set: a replay takes them in the same order."""
        if self._entries is None:
            self._note(GOT, self._ms)
        elif self._next() == GOT:
            self._entries.pop()

    def _next(self) -> int | None:
        """Return the kind of a replay's next entry, if every read before it was made."""
        assert self._entries is not None
        while self._entries and self._entries[-1][:2] == (CHANGE, 0):
            self._ms = self._entries.pop()[2]
        return self._entries[-1][0] if self._entries and not self._entries[-1][1] else None

    def _real_ms(self) -> int:
        """Return the real clock in milliseconds since 1970, which begins at the header's instant."""
        return (self._offset_us + (time.monotonic_ns() - self._start) // 1000) // 1000

    def _note(self, kind: int, ms: int) -> None:
        """Record a reading of the clock, while there is room."""
        if self._room >= TRACE_ENTRY.size:
            self._room -= TRACE_ENTRY.size
            self._trace += TRACE_ENTRY.pack(kind, min(self._reads, _MAX_READS), ms)
        self._reads, self._ms = 0, ms

    def _replayed_ms(self, entries: "list[tuple[int, int, int]]") -> int:
        """Return the clock's milliseconds at the next reading of a trace, and count the reading."""
        while entries and entries[-1][0] == CHANGE and not entries[-1][1]:
            self._ms = entries.pop()[2]
        if entries and entries[-1][1]:
            kind, reads, ms = entries[-1]
            entries[-1] = (kind, reads - 1, ms)
        elif not entries or entries[-1][0] == END:
            self._reads += 1
            if self._reads % _READS_A_MS == 0:
                self._ms += 1
        return self._ms

    def send(self, channel: "Channel", *, last: bool = False) -> None:
        """Send the readings noted since the last frame, before a frame that a script caused; ``last``: it will see no more."""
        if last and self._reads and self._entries is None:
            self._note(END, self._ms)
        if self._trace:
            channel.send(TRACE, bytes(self._trace))
            self._trace.clear()
