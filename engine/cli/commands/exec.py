"""``lodger exec``: one attempt behind real walls, without server or database; effects are shown and never applied."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lodger.engine.cli.platform import File, functions
from lodger.engine.core.errors import Usage
from lodger.engine.core.plain_text import code_frame, detail_lines
from lodger.engine.output import inputs, script_files
from lodger.engine.output.files import read_whole
from lodger.engine.output.progress import to_stderr
from lodger.engine.output.result_output import say, write_result
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from lodger.engine.node.executors.sandbox_executor import Ran

MIB = 1024 * 1024
RUNTIMES = ("quickjs", "quickjs-native", "wasm")


def execute(
    file: Annotated[
        Path,
        typer.Argument(
            help="JavaScript or TypeScript file, folder with a main.js or main.ts, or WebAssembly module (WASI preview 1 command); "
            "- reads stdin."
        ),
    ],
    runtime: Annotated[
        str | None,
        typer.Option(
            help="quickjs, quickjs-native (for trusted code only: without the WebAssembly wall) or wasm. "
            "Default: wasm for WebAssembly modules, quickjs for other files."
        ),
    ] = None,
    input_json: Annotated[
        str | None,
        typer.Option("--input", metavar="JSON", help="Input of the run: action.input of a script, stdin of a module."),
    ] = None,
    cpu_ms: Annotated[int | None, typer.Option(help="Limit of CPU time in milliseconds.")] = None,
    wall_ms: Annotated[int | None, typer.Option(help="Limit of the run's duration in milliseconds.")] = None,
    memory_mb: Annotated[int | None, typer.Option(help="Limit of memory in MiB.")] = None,
    grant: Annotated[
        list[str] | None,
        typer.Option(
            help="Additional grant, such as fetch:api.example.com; may be repeated. See `lodger grant table`."
        ),
    ] = None,
    allow_fetch: Annotated[
        bool,
        typer.Option(
            "--allow-fetch",
            help="Also send requests that change data elsewhere (POST, PUT, …) to granted hosts: they happen.",
        ),
    ] = False,
    platform: File = None,
) -> None:
    """Run a script once in the sandbox; show the changes that it would make."""
    if runtime not in (None, *RUNTIMES):
        raise Usage("runtime_unknown", runtime=runtime, runtimes=RUNTIMES)
    params = inputs.value("--input", input_json)
    limits = _limits(cpu_ms=cpu_ms, wall_ms=wall_ms, memory_bytes=None if memory_mb is None else memory_mb * MIB)
    root = script_files.root_of(file)
    raw = None if runtime != "wasm" and script_files.is_script(file) else read_whole(file)
    wasm = runtime == "wasm" or (runtime is None and raw is not None and raw.startswith(script_files.WASM))
    refused = None if wasm or raw is None else _refused(raw, limits.source_bytes, file.name)
    files: dict[str, str] = {}
    if not wasm and refused is None:
        if str(file) == "-":
            files = {script_files.MAIN: (raw or b"").decode("utf-8-sig")}
        elif isinstance(read := script_files.script(file, root, raw), dict):
            files = read
    from lodger.engine.trials.trial import not_run, try_script

    body = as_dict(
        not_run(*refused)
        if refused is not None
        else try_script(
            raw if wasm and raw is not None else files,
            params,
            limits,
            runtime=runtime or "quickjs",
            progress=to_stderr,
            grants=grant or (),
            fetches=allow_fetch,
            functions=functions(platform),
        )
    )
    entry = next(iter(files), script_files.MAIN)
    where = (body["error"] or {}).get("file") or entry
    own = file if file.is_dir() and not entry.startswith(f"{file.absolute().name}/") else root
    place = file if file.is_file() and where == entry else own / where
    shown = os.path.normpath(place) if file.is_absolute() else os.path.relpath(place)
    present(body, files.get(where) or (raw or b"").decode("utf-8", "replace"), shown)


def as_dict(ran: "Ran") -> dict[str, Any]:
    """Return the object that ``--json`` prints for a trial."""
    ended, error = ran.finished, ran.report.error
    return {
        "outcome": ended.outcome.value,
        "result": None if ended.result is None else json.loads(ended.result),
        "error": None if error is None else asdict(error),
        "logs": [{"level": line.level, "text": line.text} for line in ended.logs],
        "effects": list(ran.requested),
        "usage": {
            "cpu_ms": round(ended.usage.cpu_ms, 3),
            "wall_ms": round(ended.usage.wall_ms, 3),
            "memory_peak_bytes": ended.usage.memory_peak_bytes,
            "host_calls": ended.usage.host_calls,
        },
        "walls": ran.report.walls,
    }


def present(body: dict[str, Any], source: str, name: str) -> None:
    """Show how a trial ended; exit 1 unless it is ok."""
    write_result(body)
    _show(body, source, name)
    if body["outcome"] != "ok":
        raise typer.Exit(1)


def _limits(**wishes: int | None) -> Any:
    """Return the process limits that were given, defaults for those that are None; raises Usage for invalid ones."""
    from lodger.sandbox.errors import LimitInvalid
    from lodger.sandbox.limits import Limits

    try:
        return Limits(**{name: value for name, value in wishes.items() if value is not None})
    except LimitInvalid as error:
        raise Usage.of(error) from None


def _refused(raw: bytes, maximum: int, file: str) -> tuple[Outcome, ScriptError] | None:
    """Return the end of a source that needs no worker: too large, not UTF-8, or empty; None for others."""
    if len(raw) > maximum:
        said = f"the script has {len(raw)} bytes, the limit is {maximum}"
        return Outcome.SOURCE_TOO_LARGE, ScriptError("SourceTooLarge", said, file=file)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return _not_text(f"byte {error.start} is not UTF-8; a script must be UTF-8 text", raw[: error.start], file)
    if "\0" in text:
        at = text.index("\0")
        said = f"character {at} is NUL; a script must be text without NUL characters"
        return _not_text(said, text[:at].encode(), file)
    if not text.strip().removeprefix("\ufeff"):
        said = "the file is empty: there is nothing to run"
        return Outcome.COMPILE_ERROR, ScriptError("EmptyScript", said, file=file)
    return None


def _not_text(said: str, before: bytes, file: str) -> tuple[Outcome, ScriptError]:
    """Return the end of a source that is not UTF-8; ``before`` is the text up to the wrong byte."""
    line = before.count(b"\n") + 1
    return Outcome.COMPILE_ERROR, ScriptError("NotText", said, file=file, line=line)


def _show(body: dict[str, Any], source: str, name: str) -> None:
    """Print the result of a trial for people."""
    from lodger.engine.service.effect_diff import lines

    usage = body["usage"]
    figures = (
        f"{usage['wall_ms']:.1f} ms, CPU {usage['cpu_ms']:.1f} ms, memory {usage['memory_peak_bytes'] / MIB:.1f} MiB"
    )
    say(f"{body['outcome']}  ({figures}, {usage['host_calls']} calls)")
    for line in body["logs"]:
        say(f"{line['level']:7} {line['text']}")
    if body["error"]:
        _show_error(body["error"], source, name)
    elif body["outcome"] == "ok":
        say(f"result  {json.dumps(body['result'], ensure_ascii=False)}")
    if body["effects"]:
        say(
            "effects (dry run, not applied):"
            if body["outcome"] == "ok"
            else "effects requested before the failure (not applied):"
        )
        for text in lines(body["effects"]):
            say(f"  {text}")
    missing = [wall for wall, stands in body["walls"].items() if not stands]
    if missing:
        say(f"missing walls: {', '.join(missing)}; lodger doctor shows how to fix this")


def _show_error(error: dict[str, Any], source: str, name: str) -> None:
    place = f"{name}:{error['line']}" if error["line"] else name
    say(f"{place}: {error['name']}: {error['message']}")
    if error["name"] == "NotText":
        return
    for line in code_frame(source, error["line"], error["column"]):
        say(line)
    for line in detail_lines(error["details"]):
        say(line)
