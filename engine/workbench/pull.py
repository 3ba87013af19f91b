"""A tenant's scripts and schedules as the files of a folder, so that a deployment right after has nothing to do."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from lodger.engine.core.access import names
from lodger.engine.core.errors import InputError
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.core.toml_places import has_null, toml_key, toml_text
from lodger.engine.store.records import Schedule, ScriptVersion
from lodger.engine.store.scripts import content
from lodger.engine.store.stored_modules import ENTRIES, entry_of
from lodger.engine.workbench import schedules_file
from lodger.sandbox.limits import Limits

if TYPE_CHECKING:
    from lodger.engine.sync import Engine


def read_scripts(
    engine: "Engine", tenant_id: str
) -> tuple[dict[str, bytes], dict[str, dict[str, Any]], dict[str, str]]:
    """Return the files of a tenant's scripts by path, the settings of scripts that have any, and why others are left out."""
    files: dict[str, bytes] = {}
    settings: dict[str, dict[str, Any]] = {}
    left_out: dict[str, str] = {}
    places: dict[str, tuple[str, str]] = {}  # spelling and script: some file systems do not tell A.js from a.js
    for each in engine.scripts.list(tenant_id):
        if each.kind not in {"script", "library"}:
            left_out[each.name] = f"its kind is {each.kind}"
            continue
        version = engine.scripts.get(tenant_id, each.name)
        try:
            own = _files(engine, version)
        except InputError as error:
            left_out[each.name] = error.what
            continue
        spelled = {part.casefold(): part for path in own for part in _path_and_folders(path)}
        other = next(
            (places[key][1] for key, part in spelled.items() if key in places and places[key][0] != part), None
        )
        # Several scripts may have been deployed with the same module.
        other = other or next(
            (places[path.casefold()][1] for path, text in own.items() if files.get(path, text) != text), None
        )
        if other is not None:
            left_out[each.name] = f"it would lie where script {other} does"
            continue
        places |= {key: (part, each.name) for key, part in spelled.items()}
        files |= own
        held = {"grants": None if version.grants is None else list(version.grants), "params": version.fields}
        if any(value is not None for value in held.values()):
            settings[each.name] = {key: value for key, value in held.items() if value is not None}
    return files, settings, left_out


def _path_and_folders(path: str) -> Iterator[str]:
    """Yield a path and the folders that it lies in, for finding clashes: some file systems tell neither A.js from a.js, nor a file
    from a folder."""
    yield path
    yield from (str(each) for each in PurePosixPath(path).parents if each.name)


def _files(engine: "Engine", version: ScriptVersion) -> dict[str, bytes]:
    """Return the files of a version. Names come from the server: one that would leave the folder is refused."""
    name = version.name
    names.check_path_part(name, "script_name_invalid")
    if ":" in name or name == schedules_file.NAME:
        raise InputError("script_name_invalid.file", name=name)
    if version.wasm_bytes is not None:
        return {f"{name}.wasm": engine.scripts.module(version.tenant_id, name, version.version)}
    modules = version.modules
    content.read(modules, Limits(source_bytes=4 * 1024 * 1024), name)
    if entry_of(modules) in {f"{name}.js", f"{name}.ts", *(f"{name}/{each}" for each in ENTRIES)}:
        if "." in name:
            raise InputError("script_name_invalid.file", name=name)
        return {file: _bytes(text) for file, text in modules.items()}
    # With a dot in its name a file could be a test, a declaration, or a tool's own, such as eslint.config.js.
    if "." not in name and len(modules) == 1:
        (file, text), *_others = modules.items()
        if file in {"main.js", "main.ts"}:
            return {f"{name}.{file.partition('.')[2]}": _bytes(text)}
    return {f"{name}/{file}": _bytes(text) for file, text in modules.items()}


def _bytes(text: str) -> bytes:
    """Return the bytes of a text file."""
    # A reader removes the first byte order mark.
    return text.encode("utf-8-sig" if text.startswith("\ufeff") else "utf-8")


def table_of(schedule: Schedule) -> dict[str, Any]:
    """Return the keys of a schedule's table, without those that have their default."""
    state = schedules_file.normal_record(schedule)
    rules = state.pop("rules")
    base = schedules_file.normal({"script": state["script"], "rules": "at 2000-01-01T00:00:00Z"})
    steps = [each["script"] if list(each) == ["script"] else each for each in state.pop("script")]
    found: dict[str, Any] = {
        "script": steps[0] if len(steps) == 1 else steps,
        "rules": _rules(rules["rules"]),
        "exclusions": _rules(rules["exclusions"]),
        "dst": {key: value for key, value in rules["dst"].items() if value is not None},
    } | {key: rules[key] for key in ("tz", "start", "end")}
    found = {key: value for key, value in found.items() if value not in (None, [], {})}
    found |= {key: value for key, value in state.items() if value != base[key]}
    if "retry" in found:
        found["retry"] = {key: value for key, value in found["retry"].items() if value != base["retry"][key]}
    if "params" in found and has_null(found["params"]):
        found[schedules_file.PARAMS_JSON] = found.pop("params")
    return found


def _rules(specs: list[dict[str, Any]]) -> Any:
    """Return rules as they are written: a text each, an object if there is more to say."""
    short = [{key: value for key, value in each.items() if value is not None} for each in specs]
    texts = [each["text"] if list(each) == ["text"] else each for each in short]
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else texts


def new_file(folder: Path, schedules: Mapping[str, Any], scripts: Mapping[str, Any]) -> str | None:
    """Return the text of schedules.toml; None if the present one says the same, or if there is nothing to say.

    The name and [dev] of the present file are kept; its comments are not.
    """
    path = folder / schedules_file.NAME
    before = schedules_file.read(path, schedules_file.default_name(folder))
    text = file_text({}, schedules, scripts)
    if path.exists() and not before.findings:
        wanted = schedules_file.read_text(text, before.name)
        if _state(wanted) == _state(before):
            return None
        body = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        text = file_text({key: body[key] for key in ("name", "dev") if key in body}, schedules, scripts)
    elif not schedules and not scripts:
        return None
    return text


def _state(file: schedules_file.SchedulesFile) -> Any:
    """Return the content of a schedules file in a form that can be compared."""
    return {name: schedules_file.normal(fields) for name, fields in file.schedules.items()}, to_jsonable(file.scripts)


def file_text(kept: Mapping[str, Any], schedules: Mapping[str, Any], scripts: Mapping[str, Any]) -> str:
    """Return the text of a schedules.toml with these keys, schedules and settings of scripts."""
    lines = [f"name = {toml_text(kept['name'])}", ""] if "name" in kept else []
    for kind, tables in (("schedules", schedules), ("scripts", scripts)):
        for name, fields in tables.items():
            lines.append(f"[{kind}.{toml_key(name)}]")
            for key, value in fields.items():
                said = json.dumps(value, ensure_ascii=False) if key == schedules_file.PARAMS_JSON else value
                lines.append(f"{toml_key(key)} = {toml_text(said)}")
            lines.append("")
    if dev := kept.get("dev"):
        lines += [
            "[dev]",
            *(f"{toml_key(key)} = {toml_text(value)}" for key, value in dev.items() if key != "collections"),
            "",
        ]
        for name, rows in dev.get("collections", {}).items():
            for row in rows:
                lines.append(f"[[dev.collections.{toml_key(name)}]]")
                lines += [*(f"{toml_key(key)} = {toml_text(value)}" for key, value in row.items()), ""]
    return "\n".join(lines)
