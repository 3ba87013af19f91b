"""Runs a recorded attempt again in the walls of this machine, and shows where it departs from the record."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from lodger.engine.core import attempt_record
from lodger.engine.core.attempt_record import AttemptRecord
from lodger.engine.core.errors import Usage
from lodger.engine.core.settings import load
from lodger.engine.output.files import read_whole
from lodger.engine.store.stored_modules import MAP, is_authored
from lodger.engine.trials.claims import Source, runnable_files
from lodger.engine.trials.replay import Replayed, replay, require_runtime, source_of
from lodger.engine.trials.trial import workers
from lodger.engine.workbench import script_files
from lodger.sandbox.job import ScriptError

NATIVE = "quickjs-native"


def run(
    record: AttemptRecord, edited: Source | None = None, progress: Callable[[str], None] = lambda _text: None
) -> Replayed:
    """Replay a record in a new worker.

    The record does not choose the runtime without the WebAssembly wall: the setting LODGER_RUNTIME of this machine does.

    Args:
        edited: source to run instead of the recorded one.
        progress: called if the runtime has to be compiled first.

    Raises:
        InputError: record_invalid.
        SandboxError: this machine lacks a wall, or the runtime cannot be prepared.
    """
    runtime = runtime_of(record)
    source = source_of(record) if edited is None else with_copies(record, edited)

    async def in_walls() -> Replayed:
        async with workers(load(), runtime, wasm=isinstance(source, bytes), progress=progress) as pool:
            return await replay(pool, record, source, edited=edited is not None)

    return asyncio.run(in_walls())


def runtime_of(record: AttemptRecord) -> str:
    """Return the runtime of a record, if this machine lets records choose it.

    Raises:
        InputError: record_invalid.
    """
    runtime = require_runtime(attempt_record.checked(record))
    if runtime == NATIVE and load().runtime != NATIVE:
        raise attempt_record.invalid(
            f"it names {NATIVE}, for trusted code; set LODGER_RUNTIME={NATIVE} if you trust this one"
        )
    return runtime


def with_copies(record: AttemptRecord, edited: Source) -> Source:
    """Return an edited source with the recorded copies of the other scripts' files that it may import."""
    if isinstance(edited, bytes):
        return edited
    copies = {file: text for file, text in (record.modules or {}).items() if file != MAP and not is_authored(file)}
    return copies | edited


def edited_source(path: Path) -> Source:
    """Read the source of ``--script``: a file, a folder or a WebAssembly module.

    Raises:
        Usage: it cannot be read, or is TypeScript with an error.
    """
    if path.is_dir():
        files = script_files.folder(path)
        if not files:
            raise Usage("folder_unusable", path=str(path), maximum=script_files.MAX_FILES, entries=script_files.ENTRIES)
    else:
        raw = read_whole(path)
        if raw.startswith(script_files.WASM):
            return raw
        files = {
            "main.ts" if path.suffix == ".ts" else "main.js": raw.decode("utf-8", "replace").removeprefix("\ufeff")
        }
    prepared = runnable_files(files)
    if isinstance(prepared, ScriptError):
        raise Usage("usage.file", file=prepared.file, line=prepared.line, reason=prepared.message)
    return prepared


def read_file(path: Path) -> AttemptRecord:
    """Read a record from a file that ``lodger action record`` wrote.

    Raises:
        Usage: it cannot be read.
        InputError: record_invalid.
    """
    try:
        body = json.loads(read_whole(path, attempt_record.MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise attempt_record.invalid(f"{path} is not JSON: {error}") from None
    return attempt_record.read(body)
