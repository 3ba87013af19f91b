"""Files of npm packages that are part of the script API: fetched by the build, pinned in ``npm_packages.toml``, never committed."""

import hashlib
import tomllib
from pathlib import Path

_HERE = Path(__file__).parent


class PackageBroken(Exception):
    """A file of a package is missing, or is not the pinned one."""


def check() -> None:
    """Compare every file with its pinned digest. Raises PackageBroken."""
    for name, about in tomllib.loads((_HERE / "npm_packages.toml").read_text("utf-8")).items():
        for path, digest in about["files"].items():
            file = _HERE / "npm" / name / path
            try:
                found = hashlib.sha256(file.read_bytes()).hexdigest()
            except OSError:
                raise PackageBroken(f"{file} is missing") from None
            if found != digest:
                raise PackageBroken(f"{file} is not the file of {name} {about['version']}")
