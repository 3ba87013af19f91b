"""A folder of scripts with its ``schedules.toml``, as it stands on the disk."""

from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from lodger.engine.core.access import names
from lodger.engine.core.errors import InputError, Usage
from lodger.engine.store.scripts.linking import imported_scripts
from lodger.engine.workbench import schedules_file, script_files
from lodger.engine.workbench.findings import Finding
from lodger.engine.workbench.schedules_file import SchedulesFile

#: Endings of script files, and of the tests beside them.
SCRIPTS = (".js", ".ts", ".wasm")
TESTS = (".test.js", ".test.ts")
MAX_SCRIPTS = 1000
#: Entries of libraries: they are stored before the scripts that may import them.
_LIBRARIES = ("index.js", "index.ts")


@dataclass(frozen=True, slots=True)
class FolderScript:
    """One script. ``path`` is its file, or its folder with a main.js."""

    name: str
    path: Path
    source: str | bytes | dict[str, str]

    def text(self, file: str | None) -> str:
        """Return the text of one of its files, the entry by default; empty if there is none."""
        if isinstance(self.source, str):
            return self.source
        return self.source.get(file or self._entry, "") if isinstance(self.source, dict) else ""

    def shown(self, root: Path, file: str | None) -> str:
        """Return the path of one of its files, as findings and errors show it."""
        path = self.path / (file or self._entry) if self.path.is_dir() else self.path
        return path.relative_to(root).as_posix()

    @property
    def _entry(self) -> str:
        files = self.source if isinstance(self.source, dict) else {}
        return next((each for each in script_files.ENTRIES if each in files), script_files.MAIN)

    @property
    def imports(self) -> set[str]:
        """Names of the scripts that its files seem to import."""
        if isinstance(self.source, bytes):
            return set()
        return imported_scripts({script_files.MAIN: self.source} if isinstance(self.source, str) else self.source)

    @property
    def is_library(self) -> bool:
        """Whether it can be imported and not run."""
        return isinstance(self.source, dict) and any(entry in self.source for entry in _LIBRARIES)


@dataclass(frozen=True, slots=True)
class ScriptFolder:
    """A folder as it was read.

    Attributes:
        scripts: by name, each after those that it imports.
        tests: files with tests, by path.
        file: the content of schedules.toml.
        findings: what is wrong with the files themselves.
    """

    path: Path
    scripts: dict[str, FolderScript]
    tests: tuple[Path, ...]
    file: SchedulesFile
    findings: tuple[Finding, ...]

    def with_imports(self, names: Iterable[str]) -> list[FolderScript]:
        """Return scripts and all that they import, in the order in which they can be stored."""
        wanted, waiting = set[str](), list(names)
        while waiting:
            name = waiting.pop()
            if name in self.scripts and name not in wanted:
                wanted.add(name)
                waiting += self.scripts[name].imports
        return [script for script in self.scripts.values() if script.name in wanted]

    def with_importers(self, names: Iterable[str]) -> list[FolderScript]:
        """Return scripts and all that import them, in the order in which they can be stored."""
        wanted = set(names)
        for _ in self.scripts:
            more = {each.name for each in self.scripts.values() if each.imports & wanted} - wanted
            if not more:
                break
            wanted |= more
        return [script for script in self.scripts.values() if script.name in wanted]


def read(path: Path) -> ScriptFolder:
    """Read a folder: each ``NAME.js``, ``NAME.ts`` and ``NAME.wasm``, and each sub-folder with a main.js, is the script NAME.

    Hidden files, declarations, tests and node_modules are no scripts.

    Raises:
        Usage: folder_missing.
    """
    if not path.is_dir():
        raise Usage("folder_missing", path=str(path))
    findings: list[Finding] = []
    found: dict[str, FolderScript] = {}
    tests: list[Path] = []
    for each in sorted(path.iterdir()):
        name = _name(each)
        if each.name.endswith(TESTS) and each.is_file():
            tests.append(each)
        if name is None:
            continue
        try:
            script = _script(name, each, found.get(name))
        except (Usage, InputError) as wrong:
            body = wrong.as_dict()
            findings.append(Finding("error", each.name, None, None, body["code"], body["message"], body.get("fix", "")))
        else:
            found[name] = script
        if len(found) > MAX_SCRIPTS:
            raise Usage("folder_too_large", path=str(path), maximum=MAX_SCRIPTS)
    file = schedules_file.read(path / schedules_file.NAME, schedules_file.default_name(path))
    scripts = {name: found[name] for name in _order(found)}
    return ScriptFolder(path, scripts, tuple(tests), file, (*findings, *file.findings))


def _order(found: dict[str, FolderScript]) -> list[str]:
    """Return the names in an order in which each script comes after those that it imports; a version keeps what it finds."""
    needs = {
        name: sorted(script.imports & found.keys())
        for name, script in sorted(found.items(), key=lambda item: (not item[1].is_library, item[0]))
    }
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError:  # the refusal of the upload says which
        return list(needs)


def _script(name: str, path: Path, other: FolderScript | None) -> FolderScript:
    names.check_path_part(name, "script_name_invalid")
    script_files.refuse_link(path)
    if other is not None:
        raise InputError("script_twice", one=other.path.name, other=path.name, script=name)
    return FolderScript(name, path, script_files.script(path))


def _name(path: Path) -> str | None:
    """Return the name of the script that a path is; None if it is none."""
    if names.is_of_tools(path.name):
        return None
    if path.is_dir():
        return path.name if script_files.is_script(path) else None
    tool = path.name.endswith((*TESTS, ".d.ts"))
    return path.stem if path.suffix in SCRIPTS and not tool and path.is_file() else None
