"""Protocols of a runtime, its realms and their channel; each module in ``runtimes/`` implements them.

Order of calls: ``prepare`` once in the zygote, which never reads a tenant's byte; ``fresh`` in a forked worker after the first filter;
``bound`` with the job's limits; then the second filter is installed; then ``run`` with the tenant's bytes.
Child modules use these types only under TYPE_CHECKING: importing typing makes each fork slower.
"""

from typing import Protocol


class Channel(Protocol):
    """The worker's end of its socket: whole frames of :mod:`lodger.sandbox.frames`."""

    def send(self, kind: int, payload: bytes) -> None:
        """Send one frame; blocks."""

    def answer(self, kind: int, payload: bytes) -> None:
        """Send the one DONE or FAIL frame. In a worker this ends the process, without unwinding the guest."""

    def receive(self) -> tuple[int, bytes]:
        """Wait for one frame from the parent."""

    def wait(self, timeout_ms: int) -> bool:
        """Return whether a frame arrived within the timeout: one poll(2) on the socket (x86_64: poll, aarch64: ppoll)."""


class Realm(Protocol):
    """A new global scope for one attempt, never used again."""

    def replay(self, trace: bytes) -> None:
        """Replay the readings of the clock of an earlier attempt; called after ``bound``, if at all."""

    def bound(self, limits: dict[str, int]) -> None:
        """Apply the limits of the header (:data:`lodger.sandbox.frames.HEADER_FIELDS`): memory, soft CPU limit."""

    def run(self, bundle: bytes, channel: Channel) -> None:
        """Evaluate the bundle and answer with exactly one DONE or FAIL frame, after any CALL, LOG and REPLY frames."""


class Runtime(Protocol):
    """A runtime, held by the zygote."""

    def prepare(self, settings: dict[str, str]) -> None:
        """Load the files that all workers share, from the paths in ``settings``, and warm them up."""

    def fresh(self) -> Realm:
        """Return a realm with its own random seed; called in the worker after the first filter."""
