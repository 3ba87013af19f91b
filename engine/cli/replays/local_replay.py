"""Runs a recorded attempt again in the walls of this machine, and shows where it departs from the record."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lodger.engine.cli.dry_run import runnable_files, workers
from lodger.engine.cli.output.result_output import say
from lodger.engine.core.errors import Usage
from lodger.engine.core.plain_text import code_frame
from lodger.engine.core.settings import load
from lodger.engine.node.replay import record as records
from lodger.engine.node.replay.record import AttemptRecord, Ended
from lodger.engine.node.replay.recorded_host import MadeCall
from lodger.engine.node.replay.replay import DEPARTS, SAME, Replayed, replay, require_runtime, source_of
from lodger.engine.store.stored_modules import MAP, is_authored
from lodger.engine.workbench import script_files
from lodger.sandbox.job import ScriptError

#: Maximum length of one value in the comparison, in characters.
_MAX_SHOWN = 300
NATIVE = "quickjs-native"


def run(record: AttemptRecord, edited: dict[str, str] | bytes | None = None) -> Replayed:
    """Replay a record in a new worker.

    The record does not choose the runtime without the WebAssembly wall: the setting LODGER_RUNTIME of this machine does.

    Args:
        edited: source to run instead of the recorded one.

    Raises:
        InputError: record_invalid.
        SandboxError: this machine lacks a wall, or the runtime cannot be prepared.
    """
    runtime = runtime_of(record)
    source = source_of(record) if edited is None else with_copies(record, edited)

    async def in_walls() -> Replayed:
        async with workers(load(), runtime, wasm=isinstance(source, bytes), progress=to_stderr) as pool:
            return await replay(pool, record, source, edited=edited is not None)

    return asyncio.run(in_walls())


def runtime_of(record: AttemptRecord) -> str:
    """Return the runtime of a record, if this machine lets records choose it.

    Raises:
        InputError: record_invalid.
    """
    runtime = require_runtime(records.checked(record))
    if runtime == NATIVE and load().runtime != NATIVE:
        raise records.invalid(f"it names {NATIVE}, for trusted code; set LODGER_RUNTIME={NATIVE} if you trust this one")
    return runtime


def with_copies(record: AttemptRecord, edited: dict[str, str] | bytes) -> dict[str, str] | bytes:
    """Return an edited source with the recorded copies of the other scripts' files that it may import."""
    if isinstance(edited, bytes):
        return edited
    copies = {file: text for file, text in (record.modules or {}).items() if file != MAP and not is_authored(file)}
    return copies | edited


def edited_source(path: Path) -> dict[str, str] | bytes:
    """Read the source of ``--script``: a file, a folder or a WebAssembly module.

    Raises:
        Usage: it cannot be read, or is TypeScript with an error.
    """
    if path.is_dir():
        files = script_files.folder(path)
        if not files:
            raise Usage("folder_unusable", f"{path} has no main.js or main.ts", fix="give the script's own folder")
    else:
        raw = script_files.source(path)
        if raw.startswith(script_files.WASM):
            return raw
        files = {
            "main.ts" if path.suffix == ".ts" else "main.js": raw.decode("utf-8", "replace").removeprefix("\ufeff")
        }
    prepared = runnable_files(files)
    if isinstance(prepared, ScriptError):
        raise Usage("usage", f"{prepared.file}:{prepared.line}: {prepared.message}", fix="correct the file")
    return prepared


def read_file(path: Path) -> AttemptRecord:
    """Read a record from a file that ``lodger action record`` wrote.

    Raises:
        Usage: it cannot be read.
        InputError: record_invalid.
    """
    try:
        body = json.loads(script_files.source(path, records.MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise records.invalid(f"{path} is not JSON: {error}") from None
    return records.read(body)


def as_dict(replayed: Replayed) -> dict[str, Any]:
    """Return the object that ``--json`` prints for a replay."""
    return {
        "verdict": replayed.verdict,
        "recorded": _ended(replayed.recorded),
        "now": _ended(replayed.now),
        "limit": replayed.limit,
        "differences": list(replayed.differences),
        "departure": replayed.departure,
        "calls": len(replayed.calls),
        "notes": list(replayed.notes),
    }


def show(replayed: Replayed, modules: dict[str, str]) -> None:
    """Write the comparison for people."""
    same = {SAME: "same: it ended as recorded", DEPARTS: "departs from the record"}
    say(same.get(replayed.verdict, "undecided: the record does not tell"))
    now = replayed.now
    say(f"  outcome  {now.outcome.value}, {len(replayed.calls)} calls, {len(now.logs)} log lines")
    if now.error is not None:
        place = f"{now.error.file}:{now.error.line}: " if now.error.file and now.error.line else ""
        say(f"  error    {place}{now.error.name}: {now.error.message}")
        for line in code_frame(modules.get(now.error.file or "", ""), now.error.line, now.error.column):
            say(f"    {line}")
    departure = replayed.departure
    if departure is not None:
        say(f"  first call that differs: number {departure.number + 1}")
        say(f"    recorded  {_call(departure.recorded)}")
        say(f"    now       {_call(departure.now)}")
    for each in replayed.differences:
        if each.part == "calls":
            continue
        recorded, said = (_shown(each.part, value) for value in (each.recorded, each.now))
        if each.part == "logs":
            recorded, said = _first_different(each.recorded, each.now)
        say(f"  {each.part} differs")
        say(f"    recorded  {recorded}")
        say(f"    now       {said}")
    for note in replayed.notes:
        say(f"  note: {note}")


def _ended(ended: Ended) -> dict[str, Any]:
    return {
        "outcome": ended.outcome.value,
        "error": ended.error,
        "result": None if ended.result is None else json.loads(ended.result),
        "logs": [{"level": level, "text": text} for level, text in ended.logs],
    }


def _call(call: MadeCall | None) -> str:
    return "no further call" if call is None else _cut(f"{call.name}({call.arguments})")


def _shown(part: str, value: Any) -> str:  # noqa: ANN401 - any part of an end
    if value is None:
        return "none"
    if part == "error":
        name, message, file, line, _column = value
        return _cut(f"{name}: {message}" + (f" ({file}:{line})" if file and line else ""))
    return _cut(str(value))


def _first_different(recorded: Sequence[tuple[str, str]], now: Sequence[tuple[str, str]]) -> tuple[str, str]:
    at = next(
        (n for n, (one, two) in enumerate(zip(recorded, now, strict=False)) if one != two), min(len(recorded), len(now))
    )
    return tuple(  # type: ignore[return-value]  # two
        _cut(f"line {at + 1}: {each[at][0]} {each[at][1]}") if at < len(each) else "no further line"
        for each in (recorded, now)
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


def to_stderr(text: str) -> None:
    """Show what takes long."""
    sys.stderr.write(f"{text} …\n")
