"""Encoding and decoding of an attempt's frames, and the buffer that keeps its log within the limits."""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from lodger.sandbox import frames, prescan
from lodger.sandbox.job import Bundle, Job, LogLine, ScriptError
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import WORKER_MAY_REPORT, Outcome
from lodger.sandbox.workers import verdict
from lodger.sandbox.workers.verdict import Verdict
from lodger.stdlib import npm_packages, standard_modules

_NAME, _FILE, _MESSAGE, _STACK, _DETAILS = 256, 512, 8192, 16384, 16384
_DEPTH = 24
_limits = attrgetter(*frames.HEADER_FIELDS[: frames.HEADER_FIELDS.index("now_us")])
#: Maximum size of a FAIL frame: its texts, with up to six bytes of JSON per character.
MAX_FAILURE_BYTES = 6 * (_NAME + _FILE + _MESSAGE + _STACK + _DETAILS) + 4096
_MAY_FAIL = {str(outcome): outcome for outcome in WORKER_MAY_REPORT - {Outcome.OK}}


def header(job: Job, *, image: bool = False) -> bytes:
    """Return the payload of the HEADER frame: the limits of a job, and whether an image follows."""
    seed = frames.SEED.unpack(job.seed or os.urandom(frames.SEED.size))
    return frames.LIMITS_WIRE.pack(*_limits(job.limits), job.now_us, *seed, job.trace is not None, image)


def bundle(content: Bundle, *, compiled: bool = False) -> bytes:
    """Return the payload of the BUNDLE frame: context, modules with the entry first, standard modules that these import.

    With ``compiled`` only the context: the image has the modules.
    """
    if compiled:
        content = Bundle({}, content.context)
    standard = standard_modules.imported(content.modules)
    parts = {"": content.context, **content.modules, **standard, frames.BEGIN: content.begin}
    if not content.begin:  # a module of this name is not the script's to give
        del parts[frames.BEGIN]
    if packages := [name for name in standard if name in npm_packages.imported()]:
        parts[frames.PACKAGES] = "".join(f'import "{name}";' for name in packages)
    wire: list[bytes] = []
    for name, text in parts.items():
        label, source = name.encode(), text.encode()
        wire += (frames.BUNDLE_PART.pack(len(label), len(source)), label, source)
    return b"".join(wire)


@dataclass(frozen=True, slots=True)
class HostCall:
    """A decoded host call: the name is ASCII, the arguments are unchecked bytes."""

    number: int
    name: str
    arguments: bytes


def call(payload: bytes) -> HostCall | None:
    """Return the call of a CALL frame, None if it is malformed."""
    fixed = frames.CALL_ID.size + 1
    if len(payload) < fixed:
        return None
    end = fixed + payload[fixed - 1]
    name = payload[fixed:end]
    if not name or len(payload) <= end or not name.isascii() or not all(33 <= byte < 127 for byte in name):
        return None
    return HostCall(frames.CALL_ID.unpack_from(payload)[0], name.decode("ascii"), payload[end:])


def failure(payload: bytes) -> Verdict:
    """Return the verdict of a FAIL frame, with its texts cut; a protocol error if the outcome or the error is invalid."""
    length = payload[0] if payload else 0
    outcome = _MAY_FAIL.get(payload[1 : 1 + length].decode("ascii", "replace"))
    if outcome is None:
        return verdict.protocol_error("an outcome that workers cannot report")
    try:
        error = prescan.parse(payload[1 + length :], max_bytes=len(payload), max_depth=_DEPTH)
    except prescan.JsonRefused:
        return verdict.protocol_error("an error that is not JSON")
    if not isinstance(error, dict):
        return verdict.protocol_error("an error that is not an object")
    return Verdict(
        outcome,
        ScriptError(
            name=_text(error.get("name"), _NAME) or "Error",
            message=_text(error.get("message"), _MESSAGE) or "",
            stack=_text(error.get("stack"), _STACK) or "",
            file=_text(error.get("file"), _FILE),
            line=_position(error.get("line")),
            column=_position(error.get("column")),
            details=_details(error.get("details")),
        ),
    )


def _details(value: Any) -> dict[str, Any] | None:
    """Return the details of a script's error; None if there are none, or more than the maximum size."""
    if not isinstance(value, dict) or not value:
        return None
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")  # no store keeps half surrogates
    return json.loads(text) if len(text) <= _DETAILS else None


def _text(value: Any, maximum: int) -> str | None:
    """Return a text, cut to ``maximum`` characters; None for other values."""
    if not isinstance(value, str):
        return None
    return value[:maximum].encode("utf-8", "replace").decode()


def _position(value: Any) -> int | None:
    """Return a line or column number; None for other values."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31 else None


_CHUNK = 1 << 16


def drain(end: socket.socket, incoming: bytearray, longest: Mapping[int, int]) -> list[tuple[int, bytes]] | None:
    """Return the log, trace and FAIL frames that an ended worker left in its buffer and socket; None if there is a result.

    Before a result, the calls that precede it are carried out; otherwise calls of a dead worker are ignored.
    """
    try:
        while chunk := end.recv(_CHUNK):
            incoming += chunk
    except OSError:
        pass  # nothing left, or the socket failed
    found, at, head = [], 0, frames.HEAD
    while len(incoming) - at >= head.size:
        length, kind = head.unpack_from(incoming, at)
        begin, at = at + head.size, at + head.size + length
        if length > longest.get(kind, 0) or len(incoming) < at:
            break
        if kind == frames.DONE:
            return None
        if kind in (frames.LOG, frames.LOG_PART, frames.FAIL, frames.TRACE):
            found.append((kind, bytes(memoryview(incoming)[begin:at])))
        if kind == frames.FAIL:
            break
    return found


_CUT = "… [cut]"


class LogBuffer:
    """Log lines within the limits. A worker applies the same limits; these hold even if it does not."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lines: list[LogLine] = []
        self._bytes = 0
        self._full = False
        self.dropped = 0
        self._parts = 0
        self._unfinished = bytearray()  # level and text of an unfinished line

    def add_part(self, level_and_text: bytes) -> bool:
        """Append a part of an unfinished line. Return whether the number of parts is within the limit."""
        self._parts += 1
        room = self._limits.log_line_bytes + 2 - len(self._unfinished)
        self._unfinished += level_and_text[bool(self._unfinished) :][: max(room, 0)]
        return self._parts <= frames.MAX_LOG_PARTS

    def finish_line(self) -> None:
        """Discard the parts of a line, which arrived whole or was dropped."""
        self._unfinished.clear()

    def cut_line(self, us: int) -> LogLine | None:
        """Return the unfinished line of a stopped worker, marked as cut; None if there is none.

        If the worker had reached the maximum number of parts, the line may consist of the mark only.
        """
        if not self._unfinished and self._parts < frames.MAX_LOG_PARTS:
            return None
        line = bytes(self._unfinished) or b"\1"
        self._unfinished.clear()
        return self.add(line[0], line[1:], us, ended=False)

    def add(self, level: int, text: bytes, us: int, *, ended: bool = True) -> LogLine | None:
        """Add a line and return it, cut to the limits or marked as unfinished; None if it was dropped."""
        limits = self._limits
        room = min(limits.log_line_bytes, limits.log_bytes - self._bytes)
        if self._full or len(self._lines) >= limits.log_lines or room <= 0:
            self._full = True
            self.dropped += 1
            return None
        kept = text[:room]
        self._bytes += len(kept)
        cut = len(kept) < len(text) or not ended
        words = kept.decode("utf-8", "ignore" if cut else "replace")
        line = LogLine(
            frames.LEVELS[level] if level < len(frames.LEVELS) else "info",
            words + _CUT if cut else words,
            us,
        )
        self._lines.append(line)
        return line

    def lines(self, us: int, *, counted: bool = True) -> tuple[LogLine, ...]:
        """Return the kept lines, followed by one about dropped lines if there are any.

        Args:
            us: time of that line.
            counted: whether the worker reported its number of dropped lines; a stopped one could not.
        """
        limits = self._limits
        maximum = f"the limit is {limits.log_lines} lines and {limits.log_bytes} bytes"
        if self.dropped:
            return (*self._lines, LogLine("warn", f"[{self.dropped} more lines dropped: {maximum}]", us))
        full = len(self._lines) >= limits.log_lines or self._bytes >= limits.log_bytes
        if full and not counted:
            return (
                *self._lines,
                LogLine(
                    "warn", f"[the run was stopped while its log was full: {maximum}; further lines may be lost]", us
                ),
            )
        return tuple(self._lines)
