"""A folder of scripts with its ``schedules.toml``, as it stands on the disk."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from lodger.engine.core.access import names
from lodger.engine.core.errors import InputError, Usage
from lodger.engine.output import script_files
from lodger.engine.store.scripts.linking import imported_scripts
from lodger.engine.store.stored_modules import entry_of, is_library, is_tool_file
from lodger.engine.workbench import schedules_file
from lodger.engine.workbench.findings import Finding
from lodger.engine.workbench.schedules_file import SchedulesFile
from lodger.sandbox.runtimes.js.modules import joined
from lodger.sandbox.source_faults import Outline, no_function

_EXPORT = re.compile(r"(?<![\w$.])export\b(\s+(?:type|interface|declare)\b)?")
#: Endings of script files, and of the tests beside them.
SCRIPTS = (".js", ".ts", ".wasm")
TESTS = (".test.js", ".test.ts")
MAX_SCRIPTS = 1000
#: Maximum number of files that are looked at for those that are left out.
MAX_LOOKED_AT = 10_000


@dataclass(frozen=True, slots=True)
class FolderScript:
    """One script. ``path`` is its file, or its folder with a main.js."""

    name: str
    path: Path
    source: bytes | dict[str, str]

    def text(self, file: str | None) -> str:
        """Return the text of one of the script's files, the entry by default; empty if there is none."""
        return self.source.get(file or self._entry, "") if isinstance(self.source, dict) else ""

    def shown(self, root: Path, file: str | None) -> str:
        """Return the path of one of the script's files, as findings and errors show it."""
        file = file or self._entry
        own = self.path.relative_to(root).as_posix()
        if self.path.is_dir():
            return file if self._entry.startswith(f"{own}/") else f"{own}/{file}"
        return own if file == self._entry else file

    @property
    def _entry(self) -> str:
        """Return the name of the entry file."""
        return entry_of(self.source) if isinstance(self.source, dict) else script_files.MAIN

    @property
    def imports(self) -> set[str]:
        """Names of the libraries that the script's files seem to import."""
        return imported_scripts(self.source) if isinstance(self.source, dict) else set()

    @property
    def is_library(self) -> bool:
        """Whether the script is a library, which is imported and never run."""
        return isinstance(self.source, dict) and is_library(self.source)


@dataclass(frozen=True, slots=True)
class ScriptFolder:
    """A folder as it was read.

    Attributes:
        scripts: by name, each after those that it imports.
        tests: files with tests, by path.
        file: the content of schedules.toml.
        findings: faults of the files themselves.
        modules: files that export no function by default: they are no scripts, and scripts import them.
    """

    path: Path
    scripts: dict[str, FolderScript]
    tests: tuple[Path, ...]
    file: SchedulesFile
    findings: tuple[Finding, ...]
    modules: tuple[str, ...] = ()

    def with_imports(self, names: Iterable[str]) -> list[FolderScript]:
        """Return scripts and all that they import, in the order in which they can be stored."""
        wanted, waiting = set[str](), list(names)
        while waiting:
            name = waiting.pop()
            if name in self.scripts and name not in wanted:
                wanted.add(name)
                waiting += self.scripts[name].imports
        return [script for script in self.scripts.values() if script.name in wanted]


def read(path: Path) -> ScriptFolder:
    """Read a folder: each ``NAME.js``, ``NAME.ts`` and ``NAME.wasm``, and each sub-folder with a main.js, is the script NAME.

    A file that exports something and nothing by default is a module of the scripts that import it, and so is an imported one whose
    default export is no function. Hidden files, declarations, tests, settings of tools and node_modules are no scripts.

    Raises:
        Usage: folder_missing.
    """
    if not path.is_dir():
        raise Usage("folder_missing", path=str(path))
    findings: list[Finding] = []
    found: dict[str, FolderScript] = {}
    tests: list[Path] = []
    modules: list[str] = []
    for each in sorted(path.iterdir()):
        name = _name(each)
        if each.name.endswith(TESTS) and each.is_file():
            tests.append(each)
        if name is None:
            continue
        if each.suffix in script_files.CODE:
            findings.append(_refused(each, script_files.not_javascript(each)))
            continue
        try:
            script = _script(name, each, found.get(name), path)
        except (Usage, InputError) as wrong:
            findings.append(_refused(each, wrong))
            continue
        if (each.is_file() and Outline(script.text(None)).is_module) or (script.is_library and _leaves(script)):
            modules.append(each.name)
        else:
            found[name] = script
        if len(found) > MAX_SCRIPTS:
            raise Usage("folder_too_large", path=str(path), maximum=MAX_SCRIPTS)
    modules += [found.pop(name).path.name for name in _of_values(path, found)]
    file = schedules_file.read(path / schedules_file.NAME, schedules_file.default_name(path))
    scripts = {name: found[name] for name in _order(found)}
    findings += _left_out(path, scripts.values(), tests)
    return ScriptFolder(path, scripts, tuple(tests), file, (*findings, *file.findings), tuple(modules))


def _of_values(path: Path, found: dict[str, FolderScript]) -> list[str]:
    """Return the names of scripts that export a value by default, no function, and whose file another script imports."""
    texts = {name: script.source for name, script in found.items() if isinstance(script.source, dict)}
    return [
        name
        for name, source in texts.items()
        if no_function(source)
        and any(found[name].shown(path, None) in files for other, files in texts.items() if other != name)
    ]


def _leaves(script: FolderScript) -> bool:
    """Whether a file of a script's folder imports a file outside of that folder by its path, which a library cannot."""
    files = script.source.items() if isinstance(script.source, dict) else ()
    imports = ((file, each[0]) for file, text in files for each in Outline(text).imports)
    return any((joined(file.encode(), wanted.encode()) or b"").startswith(b"../") for file, wanted in imports)


def _has_only_types(path: Path) -> bool:
    """Whether a TypeScript file exports types and nothing else, whose imports disappear with them."""
    exports = _EXPORT.findall(Outline(path.read_text("utf-8", "replace")).code) if path.suffix == ".ts" else []
    return bool(exports) and all(exports)


def _refused(path: Path, wrong: Usage | InputError) -> Finding:
    """Return the finding about a file that could not be read."""
    body = wrong.as_dict()
    return Finding("error", path.name, body["code"], body["message"], body.get("fix", ""))


def _left_out(root: Path, scripts: Iterable[FolderScript], tests: Iterable[Path]) -> Iterator[Finding]:
    """Yield a warning for each file of code that is neither a script nor imported by one or by a test."""
    used = {script.shown(root, file) for script in scripts if isinstance(script.source, dict) for file in script.source}
    for test in tests:
        with suppress(Usage, UnicodeDecodeError, OSError):
            used |= script_files.with_imports(root, {test.name: test.read_text("utf-8")}).keys()
    inside = (each for folder in root.iterdir() if _may_hold_modules(folder) for each in sorted(folder.rglob("*")))
    for each in sorted([*root.iterdir(), *inside])[:MAX_LOOKED_AT]:
        place = each.relative_to(root).as_posix()
        code = each.suffix in {".js", ".ts", *script_files.CODE} and not each.name.endswith((*TESTS, ".d.ts"))
        hidden = any(names.is_of_tools(part) for part in place.split("/")) or is_tool_file(each.name)
        if (
            code
            and not hidden
            and each.is_file()
            and place not in used
            and (len(each.relative_to(root).parts) > 1 or _is_module(each))
            and not _has_only_types(each)
        ):
            what = "no script imports this file, and it is none itself: it is left out"
            fix = f"import it by its path, such as './{place}', or write export default before the function to run"
            if len(each.relative_to(root).parts) > 1 and not _is_module(each):
                fix = f"import it by its path, such as './{place}'; scripts are files of the folder itself, and folders with a main.js"
            yield Finding("warning", place, "file_left_out", what, fix)


def _may_hold_modules(folder: Path) -> bool:
    """Whether a sub-folder may hold modules that scripts import: it is no link, no folder of tools, and no script itself."""
    return (
        folder.is_dir()
        and not folder.is_symlink()
        and not names.is_of_tools(folder.name)
        and not script_files.is_script(folder)
    )


def _is_module(path: Path) -> bool:
    """Whether a file exports something and nothing by default."""
    with suppress(OSError, UnicodeDecodeError):
        return Outline(path.read_text("utf-8")).is_module
    return False


def _order(found: dict[str, FolderScript]) -> list[str]:
    """Return the names of scripts, each after those that it imports: a version keeps the imported files as they are when it is stored."""
    needs = {
        name: sorted(script.imports & found.keys())
        for name, script in sorted(found.items(), key=lambda item: (not item[1].is_library, item[0]))
    }
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError:  # the refusal of the upload says which
        return list(needs)


def _script(name: str, path: Path, other: FolderScript | None, root: Path) -> FolderScript:
    """Return the script of a file or folder."""
    names.check_path_part(name, "script_name_invalid")
    script_files.refuse_link(path)
    if other is not None:
        raise InputError("script_twice", one=other.path.name, other=path.name, script=name)
    source = script_files.script(path, root)
    if name == "index" and isinstance(source, dict) and path.is_file():  # as files of a script, it would make a library
        source = {f"main{path.suffix}": source[path.name]} | {
            file: text for file, text in source.items() if file != path.name
        }
    return FolderScript(name, path, source)


def _name(path: Path) -> str | None:
    """Return the name of the script that a path is; None if it is none."""
    if names.is_of_tools(path.name):
        return None
    if path.is_dir():
        return path.name if script_files.is_script(path) else None
    tool = path.name.endswith((*TESTS, ".d.ts")) or is_tool_file(path.name)
    return path.stem if path.suffix in {*SCRIPTS, *script_files.CODE} and not tool and path.is_file() else None
