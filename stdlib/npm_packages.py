"""Files of npm packages that are part of the script API: fetched by the build, pinned in ``npm_packages.toml``, never committed."""

import hashlib
import tomllib
from pathlib import Path

#: Where the table and the folder npm lie.
FOLDER = Path(__file__).parent


class PackageBroken(Exception):
    """A file of a package is missing, or is not the pinned one."""


def check(folder: Path | None = None) -> None:
    """Compare every file with its pinned digest; ``folder`` replaces FOLDER. Raises PackageBroken."""
    folder = folder or FOLDER
    for name, about in tomllib.loads((folder / "npm_packages.toml").read_text("utf-8")).items():
        for path, digest in about["files"].items():
            file = folder / "npm" / name / path
            try:
                found = hashlib.sha256(file.read_bytes()).hexdigest()
            except OSError:
                raise PackageBroken(f"{file} is missing") from None
            if found != digest:
                raise PackageBroken(f"{file} is not the file of {name} {about['version']}")
