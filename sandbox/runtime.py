"""What a runtime must offer; each module in ``runtimes/`` is one.

The life of a runtime: ``prepare`` once in the zygote, where no tenant byte ever comes; ``fresh`` in a forked worker that is
already locked; ``bound`` with the job's numbers; then the second filter rises; then ``run`` with the tenant's bytes.
Child modules use these types only under TYPE_CHECKING: importing typing makes each fork dearer.
"""

from typing import Protocol


class Channel(Protocol):
    """The worker's end of its socket: whole frames of :mod:`lodger.sandbox.frames`."""

    def send(self, kind: int, payload: bytes) -> None:
        """Send one frame; blocks."""
        ...

    def answer(self, kind: int, payload: bytes) -> None:
        """Send the one DONE or FAIL frame. In a worker the process ends with it: nothing is unwound, nothing of the guest runs again."""
        ...

    def receive(self) -> tuple[int, bytes]:
        """Wait for one frame from the parent."""
        ...

    def wait(self, timeout_ms: int) -> bool:
        """Say whether a frame came within that time: one poll(2) on the socket (x86_64: poll, aarch64: ppoll)."""
        ...


class Realm(Protocol):
    """One fresh global scope, used for one attempt and never again."""

    def bound(self, limits: dict[str, int]) -> None:
        """Apply the header's numbers (memory, fuel, soft CPU stop): :data:`lodger.sandbox.frames.HEADER_FIELDS`."""
        ...

    def run(self, bundle: bytes, channel: Channel) -> None:
        """Evaluate the bundle, answer by exactly one DONE or FAIL frame; CALL, LOG and REPLY frames before it."""
        ...


class Runtime(Protocol):
    """Held by the zygote."""

    name: str

    def prepare(self, settings: dict[str, str]) -> None:
        """Load what every worker shares (paths are in ``settings``), evaluate the touch block so that pages are built once."""
        ...

    def fresh(self) -> Realm:
        """In the worker, after the first filter: make or take a realm, reseed it, touch it. Leaves no trace a script could see."""
        ...
