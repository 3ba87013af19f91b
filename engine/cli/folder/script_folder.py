"""A folder of scripts with its ``schedules.toml``, as it stands on the disk."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lodger.engine.cli import inputs
from lodger.engine.cli.folder import schedules_file
from lodger.engine.cli.folder.findings import Finding
from lodger.engine.cli.folder.schedules_file import SchedulesFile
from lodger.engine.cli.output.failure import Usage
from lodger.engine.core.access import names
from lodger.engine.core.errors import InputError

#: Endings of script files, and of the tests beside them.
SCRIPTS = (".js", ".ts", ".wasm")
TESTS = (".test.js", ".test.ts")
MAX_SCRIPTS = 1000
#: Maximum depth of imports that is followed for the order.
MAX_DEPTH = 50
_IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s{0,20}\(?\s{0,20}["'](?:lib:|(?:\.\.?/){1,20})([^"'\n\\/@]{1,200})""")
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
        return next((each for each in inputs.ENTRIES if each in files), inputs.MAIN)

    @property
    def imports(self) -> set[str]:
        """Names of the scripts that its files seem to import."""
        texts = self.source.values() if isinstance(self.source, dict) else [self.source]
        return {name for text in texts if isinstance(text, str) for name in imported_names(text)}

    @property
    def is_library(self) -> bool:
        """Whether it can be imported and not run."""
        return isinstance(self.source, dict) and any(entry in self.source for entry in _LIBRARIES)


def imported_names(text: str) -> set[str]:
    """Return the names of other scripts that a text seems to import: ``./NAME.js``, ``../NAME/FILE`` or ``lib:NAME@VERSION``."""
    return {re.sub(r"\.[jt]s$", "", each) for each in _IMPORT.findall(text)}


@dataclass(frozen=True, slots=True)
class ScriptFolder:
    """A folder as it was read.

    Attributes:
        scripts: by name, those that others import before them.
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
        raise Usage("folder_missing", f"there is no folder {str(path)!r}", fix="give the folder of your scripts")
    findings: list[Finding] = []
    found: dict[str, FolderScript] = {}
    tests: list[Path] = []
    for each in sorted(path.iterdir()):
        name = _name(each)
        if each.name.endswith(TESTS):
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
            raise Usage("folder_too_large", f"{str(path)!r} has more than {MAX_SCRIPTS} scripts", fix="split it")
    file = schedules_file.read(path / schedules_file.NAME, schedules_file.default_name(path))
    scripts: dict[str, FolderScript] = {}
    for name in sorted(found, key=lambda each: (not found[each].is_library, each)):
        _place(name, found, scripts, set())
    return ScriptFolder(path, scripts, tuple(tests), file, (*findings, *file.findings))


def _place(name: str, found: Mapping[str, FolderScript], placed: dict[str, FolderScript], under: set[str]) -> None:
    """Place a script after those that it imports; a cycle is left to the engine, which refuses it."""
    if name in placed or name in under or len(under) > MAX_DEPTH:
        return
    for other in sorted(found[name].imports & found.keys()):
        _place(other, found, placed, under | {name})
    placed.setdefault(name, found[name])


def _script(name: str, path: Path, other: FolderScript | None) -> FolderScript:
    names.check(name, "script_name_invalid", "a script", "rename the file")
    if other is not None:
        what = f"{other.path.name} and {path.name} are both the script {name!r}"
        raise InputError("script_twice", what, fix="rename one of them")
    return FolderScript(name, path, inputs.script(path))


def _name(path: Path) -> str | None:
    """Return the name of the script that a path is; None if it is none."""
    if path.name.startswith(".") or path.name == inputs.PACKAGES:
        return None
    if path.is_dir():
        return path.name if inputs.is_script(path) else None
    tool = path.name.endswith((*TESTS, ".d.ts"))
    return path.stem if path.suffix in SCRIPTS and not tool and path.is_file() else None
