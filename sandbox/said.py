"""What the two sides say, as values: the parent's header and bundle as bytes, a worker's bytes as values or as nothing when malformed."""

from dataclasses import dataclass
from typing import Any

from lodger.sandbox import frames, prescan, verdict
from lodger.sandbox.job import Bundle, Job, ScriptError
from lodger.sandbox.outcome import WORKER_MAY_REPORT, Outcome
from lodger.sandbox.verdict import Verdict

_NAME, _FILE, _MESSAGE, _STACK = 256, 512, 8192, 16384
#: Of a FAIL frame: its texts, where each letter may be six bytes of JSON.
MOST_FAILURE_BYTES = 6 * (_NAME + _FILE + _MESSAGE + _STACK) + 4096
_MAY_FAIL = {str(outcome): outcome for outcome in WORKER_MAY_REPORT - {Outcome.OK}}


def header(job: Job) -> bytes:
    """Give the numbers of a job, and nothing else of it."""
    other = {"fuel": job.fuel, "now_us": job.now_us}
    return frames.LIMITS_WIRE.pack(
        *(other[name] if name in other else getattr(job.limits, name) for name in frames.HEADER_FIELDS)
    )


def bundle(content: Bundle) -> bytes:
    """Give context and modules; the entry comes first of the modules."""
    entry = {content.entry: content.modules[content.entry]} if content.entry in content.modules else {}
    parts = {"": content.context, **entry, **content.modules}
    wire = bytearray()
    for name, text in parts.items():
        label, source = name.encode(), text.encode()
        wire += frames.BUNDLE_PART.pack(len(label), len(source)) + label + source
    return bytes(wire)


@dataclass(frozen=True, slots=True)
class Asked:
    """A host call as it came: the name is ASCII, the arguments are unchecked bytes."""

    number: int
    name: str
    arguments: bytes


def call(payload: bytes) -> Asked | None:
    """Read a CALL frame; None when it is malformed."""
    fixed = frames.CALL_ID.size + 1
    if len(payload) < fixed:
        return None
    end = fixed + payload[fixed - 1]
    name = payload[fixed:end]
    if not name or len(payload) <= end or not name.isascii() or not all(33 <= byte < 127 for byte in name):
        return None
    return Asked(frames.CALL_ID.unpack_from(payload)[0], name.decode("ascii"), payload[end:])


def failure(payload: bytes) -> Verdict:
    """Read a FAIL frame: an outcome that blames the tenant, with an error in bounded plain texts; otherwise a protocol error."""
    length = payload[0] if payload else 0
    outcome = _MAY_FAIL.get(payload[1 : 1 + length].decode("ascii", "replace"))
    if outcome is None:
        return verdict.protocol_error("an outcome that a worker may not report")
    try:
        error = prescan.parse(payload[1 + length :], max_bytes=len(payload), max_depth=4)
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
        ),
    )


def _text(value: Any, most: int) -> str | None:  # noqa: ANN401 - hostile JSON
    if not isinstance(value, str):
        return None
    return value[:most].encode("utf-8", "replace").decode()


def _position(value: Any) -> int | None:  # noqa: ANN401 - hostile JSON
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31 else None
