"""What is asked of the sandbox and what it answers."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from asyncio import Future


@dataclass(frozen=True, slots=True)
class Bundle:
    """A script and what it is called with.

    Attributes:
        modules: source text by file name; the entry is ``main.js``.
        context: JSON text handed to the default export's argument: ``{"action": {...}, "now": us, "grants": [...]}``;
            for a WebAssembly module, all that it reads from its standard input.
        wasm: a WASI preview 1 command instead of modules.
    """

    modules: dict[str, str]
    context: str = "{}"
    entry: str = "main.js"
    wasm: bytes | None = None

    @property
    def runtime(self) -> str | None:
        """What alone can run it: ``wasm``, or None when any runtime for JavaScript can."""
        return None if self.wasm is None else "wasm"


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt.

    Attributes:
        tag: the caller's name for it, for logs and ``ps`` only; never sent to the worker.
        fuel: deterministic instruction ceiling, 0 for none.
        now_us: what the script's clock starts from, microseconds since 1970.
        tenant: whose it is; compiled modules are kept apart by it. Never sent to the worker.
        stop: once it is done the worker is killed, and the report says cancelled, with what was logged and used till then.
    """

    bundle: Bundle
    limits: Limits = field(default_factory=Limits)
    tag: str = ""
    fuel: int = 0
    now_us: int = 0
    tenant: str = ""
    stop: "Future[None] | None" = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ScriptError:
    """What the author needs to mend a script. ``line`` and ``column`` are 1-based in ``file``; None when unknown."""

    name: str
    message: str
    stack: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What an attempt used, by the kernel's figures."""

    cpu_ms: float = 0.0
    wall_ms: float = 0.0
    memory_peak_bytes: int = 0
    host_calls: int = 0


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line a script wrote; ``us`` is the parent's clock at arrival."""

    level: str
    text: str
    us: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """How an attempt ended.

    Attributes:
        outcome: the parent's verdict.
        result: JSON text of the returned value when the outcome is ok.
        error: set for every other outcome.
        logs: in order, bounded by the limits, with a last line that says so when something was cut.
        dropped_logs: lines that did not fit.
        walls: which walls stood around this run, by name.
    """

    outcome: Outcome
    result: str | None = None
    error: ScriptError | None = None
    logs: tuple[LogLine, ...] = ()
    dropped_logs: int = 0
    usage: Usage = field(default_factory=Usage)
    walls: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a host call: JSON text of the value, or of ``{"code","message"}`` when ``ok`` is false."""

    ok: bool
    json: str


class HostGone(Exception):
    """What answers a script's calls is not there now, a database that was stopped: nobody's bug, and the run begins again."""


class Host(Protocol):
    """The parent's end of a script's calls. Arguments are hostile; an exception from here is our fault, but for :class:`HostGone`."""

    async def call(self, name: str, arguments: str) -> Reply:
        """Answer one call; ``arguments`` is JSON text within frame_bytes and json_depth, otherwise unchecked."""
        ...

    def log(self, line: LogLine) -> None:
        """See a log line as it arrives (it is also in the report)."""
        ...
