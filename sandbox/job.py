"""Input and output of the sandbox: a job with its script and limits, the report of its attempt, and the host of its calls."""

from asyncio import CancelledError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from asyncio import Future

#: Last whole year of a script's clock, which counts nanoseconds since 1970 in 64 bits.
LAST_YEAR = 2553


@dataclass(frozen=True, slots=True)
class Bundle:
    """A script and its input.

    Attributes:
        modules: source text by file name, the entry first.
        context: JSON text of the default export's argument: ``{"action": {...}, "now": us, "grants": [...]}``;
            for a WebAssembly module, the content of its standard input.
        wasm: a WASI preview 1 command instead of modules.
        source_map: of ``main.js``, unpacked (:mod:`lodger.sandbox.workers.source_map`); never sent to the worker.
        begin: text of the module that is evaluated before those of the script, for a check; empty for the runtime's own.
    """

    modules: dict[str, str]
    context: str = "{}"
    wasm: bytes | None = None
    source_map: str | None = None
    begin: str = ""

    @property
    def entry(self) -> str:
        """Name of the file that is run."""
        return next(iter(self.modules), "main.js")

    @property
    def runtime(self) -> str | None:
        """The runtime that the script needs: ``wasm``, or None if any runtime for JavaScript can run it."""
        return None if self.wasm is None else "wasm"


class Slot(Protocol):
    """The right of an attempt to compute, which it does not need while its worker sleeps for an answer."""

    def leave(self, memory_bytes: int) -> None:
        """Return the slot; ``memory_bytes`` is the memory that the script holds meanwhile."""

    async def enter(self) -> None:
        """Wait until the attempt holds a slot again."""

    def take(self) -> None:
        """Hold a slot again at once, even if none is free."""


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt.

    Attributes:
        tag: the caller's name for it, for logs and ``ps`` only; never sent to the worker.
        now_us: initial value of the script's clock, microseconds since 1970.
        seed: 32 bytes that all its randomness is drawn from; empty for a new seed.
        trace: readings of the clock that the script is to see, from the report of an earlier run; None for the real clock.
        tenant: owner of the script; compiled modules are cached per tenant. Never sent to the worker.
        slot: given back while the worker sleeps for an answer; None to hold none.
        stop: when it is done, the worker is killed and the report says cancelled, with logs and usage up to then.
    """

    bundle: Bundle
    limits: Limits = field(default_factory=Limits)
    tag: str = ""
    now_us: int = 0
    tenant: str = ""
    seed: bytes = field(default=b"", repr=False)
    trace: bytes | None = field(default=None, repr=False)
    slot: Slot | None = field(default=None, compare=False, repr=False)
    stop: "Future[None] | None" = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ScriptError:
    """Error of a script as its author sees it. ``line`` and ``column`` are 1-based in ``file``; None if unknown.

    ``details`` has what else the error carries: its own fields such as ``code``, its ``cause`` with name, message, stack and details of its
    own, and the ``errors`` of an AggregateError; None if there is nothing.
    """

    name: str
    message: str
    stack: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None
    details: dict[str, Any] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """Resource usage of an attempt, as counted by the kernel; the engine adds the CPU time of cryptographic host calls."""

    cpu_ms: float = 0.0
    wall_ms: float = 0.0
    memory_peak_bytes: int = 0
    host_calls: int = 0


@dataclass(frozen=True, slots=True)
class LogLine:
    """One log line of a script; ``us`` is the parent's clock at arrival, microseconds since 1970."""

    level: str
    text: str
    us: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """How an attempt ended.

    Attributes:
        outcome: decided by the parent.
        result: JSON text of the returned value if the outcome is ok.
        error: set for every other outcome.
        logs: in order, bounded by the limits; a last line says so if some were dropped.
        dropped_logs: number of lines beyond the limits.
        walls: maps each wall's name to whether it was active.
        trace: readings of the clock by the script, for a :class:`Job` that repeats it.
    """

    outcome: Outcome
    result: str | None = None
    error: ScriptError | None = None
    logs: tuple[LogLine, ...] = ()
    dropped_logs: int = 0
    usage: Usage = field(default_factory=Usage)
    walls: dict[str, bool] = field(default_factory=dict)
    trace: bytes = field(default=b"", repr=False)


class JobCancelled(CancelledError):
    """The task that awaited a job was cancelled while its worker ran; ``report`` has its logs and usage until then."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a host call: JSON text of the value, or of ``{"code","message"}`` when ``ok`` is false."""

    ok: bool
    json: str


class CallHandlerGone(Exception):
    """The service behind a host call is unavailable, such as a stopped database; the attempt is retried."""


class CallHandler(Protocol):
    """The parent's side of host calls. Arguments are untrusted. Exceptions but :class:`CallHandlerGone` are faults of the engine."""

    async def call(self, name: str, arguments: str) -> Reply:
        """Carry out one call and return its reply; ``arguments`` is JSON text within frame_bytes and json_depth, otherwise unchecked."""

    def log(self, line: LogLine) -> None:
        """Receive a log line as it arrives; it is also in the report."""


class NoHost:
    """A host that denies every call, of scripts that are only checked, compiled or measured."""

    async def call(self, name: str, arguments: str) -> Reply:
        """Return a refusal."""
        return Reply(ok=False, json='{"code":"denied","message":"the script is only checked, not run"}')

    def log(self, line: LogLine) -> None:
        """Discard the line."""


class Runs(Protocol):
    """A pool of workers."""

    async def run(self, job: Job, host: CallHandler) -> Report:
        """Run one job in a new worker and return its report."""
