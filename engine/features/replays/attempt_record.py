"""The record of an attempt: input and answers of its script, and its end. Everything that a replay needs, without secrets."""

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from lodger.engine.core.errors import InputError
from lodger.engine.core.serialization import from_jsonable, to_jsonable
from lodger.engine.store.schema.scheduling import MAX_PACKED_BYTES
from lodger.sandbox import frames
from lodger.sandbox.errors import LimitInvalid
from lodger.sandbox.job import LogLine, Report, ScriptError, Usage
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome
from lodger.stdlib.calls import CALLS

FORMAT = 1
#: Maximum of a record's JSON text; calls beyond it, or beyond MAX_PACKED_BYTES, are left out, and the record says so.
MAX_BYTES = 32 << 20
#: Request headers whose values are recorded; any other may be a key.
_OPEN_HEADERS = frozenset({"accept", "accept-language", "content-type", "content-length", "user-agent"})
#: Response headers whose values are not recorded.
_SECRET_HEADERS = frozenset(
    {"set-cookie", "authorization", "www-authenticate", "proxy-authenticate", "authentication-info"}
)
_MASK = "[not recorded]"
#: Outcomes that no replay repeats, because the cause was not in the script.
FROM_OUTSIDE = {
    Outcome.CANCELLED: "it was cancelled",
    Outcome.WORKER_LOST: "its worker was lost",
    Outcome.ENGINE_FAULT: "the engine or a service behind it failed",
}


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A host call with its answer.

    Attributes:
        arguments: JSON text in one form: without the script's line, without values of headers that may be keys.
        order: place of the answer among the answers; None if the attempt ended before it.
        ok: False for a refusal; None if the service behind the call was gone.
        answer: JSON text.
        outcome: outcome of the attempt if the script lets the refusal pass; None for ``script_error``.
    """

    name: str
    arguments: str
    order: int | None = None
    ok: bool | None = None
    answer: str = "null"
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended: in the recorded attempt, or in a replay.

    Attributes:
        result: JSON text.
        logs: level and text of each line, without warnings of budgets.
    """

    outcome: Outcome
    error: ScriptError | None = None
    result: str | None = None
    logs: tuple[tuple[str, str], ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """Input and answers of an attempt, and its end.

    Attributes:
        lodger: version of the engine that ran it.
        runtime: quickjs, quickjs-native or wasm.
        context: JSON text of the script's context: its action with the input, its grants, the datasets that it knows; the
            standard input of a WebAssembly module.
        now_us: start of the script's clock, microseconds since 1970.
        seed: 32 bytes in hexadecimal digits that all randomness is drawn from.
        clock: readings of the clock by the script, base64.
        complete: False if calls after those in ``calls`` were left out, because the record would be too large.
        secrets: names of the secrets that the script read; in the record they are placeholders.
        committed: how the attempt ended in the ledger, if its commit was refused after the script had ended well.
        modules: source by file name; ``wasm`` is a module's bytes in base64. Only in a record that was read out.
    """

    format: int
    lodger: str
    runtime: str
    action: str
    step: int
    attempt: int
    script: str
    version: int
    now_us: int
    seed: str
    clock: str
    limits: dict[str, int]
    context: str
    calls: tuple[RecordedCall, ...]
    ended: Ended
    complete: bool = True
    secrets: tuple[str, ...] = ()
    committed: Ended | None = None
    modules: dict[str, str] | None = None
    wasm: str | None = None

    @property
    def process_limits(self) -> Limits:
        """The process limits of the recorded attempt."""
        return Limits(**self.limits)

    @property
    def trace(self) -> bytes:
        """The script's readings of the clock in the recorded attempt."""
        return base64.b64decode(self.clock)


def with_source(record: AttemptRecord, modules: dict[str, str], wasm: bytes | None) -> AttemptRecord:
    """Return a record with the source that ran."""
    return replace(record, modules=modules, wasm=None if wasm is None else base64.b64encode(wasm).decode())


def of_report(outcome: Outcome, error: ScriptError | None, report: Report) -> Ended:
    """Return the end that a report tells, with the parent's verdict on it."""
    result = report.result if outcome is Outcome.OK else None
    return Ended(outcome, error, result, lines_of(report.logs), report.usage)


def lines_of(lines: Sequence[LogLine]) -> tuple[tuple[str, str], ...]:
    """Return level and text of log lines."""
    return tuple((line.level, line.text) for line in lines)


def pack(record: AttemptRecord) -> bytes:
    """Return a record in the form in which it is stored, with as many of its calls as fit."""
    while True:
        text = json.dumps(to_jsonable(record), ensure_ascii=False, separators=(",", ":"))
        # Halves of surrogate pairs stay, as escapes of JSON. A higher level of compression takes three times as long for 3 % less.
        packed = zlib.compress(text.encode("utf-8", "backslashreplace"), 1)
        if len(packed) <= MAX_PACKED_BYTES or not record.calls:
            return packed
        record = replace(record, calls=in_order(record.calls[: len(record.calls) // 2]), complete=False)


def in_order(calls: Sequence[RecordedCall]) -> tuple[RecordedCall, ...]:
    """Number the answers of calls anew, without gaps."""
    answered = sorted(each.order for each in calls if each.order is not None)
    place = {order: number for number, order in enumerate(answered)}
    return tuple(each if each.order is None else replace(each, order=place[each.order]) for each in calls)


def unpack(packed: bytes) -> Any:
    """Return the JSON value of a stored record.

    Raises:
        InputError: record_invalid.
    """
    try:
        return json.loads(zlib.decompressobj().decompress(packed, MAX_BYTES))
    except (zlib.error, ValueError, RecursionError) as refused:
        raise invalid("it cannot be decompressed") from refused


def read(body: object) -> AttemptRecord:
    """Return a record from its JSON value, which may come from anywhere.

    Raises:
        InputError: record_invalid.
    """
    try:
        record: AttemptRecord = from_jsonable(AttemptRecord, body)
    except ValidationError as refused:
        first = refused.errors()[0]
        raise invalid(f"{'.'.join(str(each) for each in first['loc']) or 'it'}: {first['msg']}") from None
    return checked(record)


def checked(record: AttemptRecord) -> AttemptRecord:
    """Return a record that a replay can use; a server or an archive may have made it up.

    Raises:
        InputError: record_invalid.
    """
    try:
        _ = record.process_limits
        seed, clock = bytes.fromhex(record.seed), base64.b64decode(record.clock, validate=True)
        base64.b64decode(record.wasm or "", validate=True)
        refusals = [json.loads(each.answer) for each in record.calls if each.ok is False]
        for ended in (record.ended, record.committed):
            json.loads("null" if ended is None or ended.result is None else ended.result)
        for each in record.calls:
            each.answer.encode()
    except (LimitInvalid, ValueError, TypeError, RecursionError) as refused:
        raise invalid(str(refused)) from None
    if not all(
        isinstance(each, dict) and isinstance(each.get("code"), str) and isinstance(each.get("message"), str)
        for each in refusals
    ):
        raise invalid("a refused call has no code and message")
    if len(seed) != frames.SEED.size or not any(seed):
        raise invalid("seed must be 32 bytes in hexadecimal digits, not all zero")
    if len(clock) > frames.MAX_TRACE_BYTES:
        raise invalid("clock is too long")
    if record.wasm is None and record.modules and record.runtime == "wasm":
        raise invalid("a script does not run on the runtime wasm")
    if record.format != FORMAT:
        raise invalid(f"it has the format {record.format}, this version reads {FORMAT}")
    if not 0 <= record.now_us < 1 << 60:
        raise invalid("now_us is outside the range of instants")
    if sorted(each.order for each in record.calls if each.order is not None) != [
        *range(sum(each.order is not None for each in record.calls))
    ]:
        raise invalid("the answers of its calls are not in order")
    return record


def invalid(why: str) -> InputError:
    """Return the error of a record that cannot be read."""
    return InputError("record_invalid", reason=why)


def one_form(name: str, arguments: str) -> str:
    """Return the arguments of a call, JSON text, in the form in which calls are recorded and compared.

    The line of the script is left out, which an edit moves, and so are values of headers that may be keys.
    """
    try:
        given = json.loads(arguments)
    except ValueError:
        return arguments
    if isinstance(given, dict):
        call = CALLS.get(name)
        if call is not None and "line" in call.arguments:
            given.pop("line", None)
        if isinstance(given.get("headers"), list):
            given["headers"] = [_masked(each, open_only=True) for each in given["headers"]]
    text = json.dumps(given, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8", "backslashreplace").decode()


def answer_of(name: str, arguments: str, answer: str) -> str:
    """Return the answer of a call without values that must not be recorded: of a secret, of cookies."""
    if name == "secrets.read":
        return json.dumps(f"[secret {secret_of(arguments)}]")
    if name == "http.fetch" and '"headers"' in answer:
        found = json.loads(answer)
        if isinstance(found, dict) and isinstance(found.get("headers"), list):
            found["headers"] = [_masked(each, open_only=False) for each in found["headers"]]
            return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return answer


def secret_of(arguments: str) -> str:
    """Return the name of the secret that a call reads."""
    given = json.loads(arguments)
    return str(given.get("name")) if isinstance(given, dict) else ""


def _masked(pair: Any, *, open_only: bool) -> Any:
    """Return a header, its value masked if it may be a secret."""
    if not isinstance(pair, list) or len(pair) != 2:
        return pair
    name = str(pair[0]).lower()
    shown = name in _OPEN_HEADERS if open_only else name not in _SECRET_HEADERS
    return pair if shown else [pair[0], _MASK]
