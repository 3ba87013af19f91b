"""Files of npm packages that are part of the script API: made by the build, pinned in ``npm_packages.toml``, never committed."""

import hashlib
import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

#: Where the table and the folder npm lie.
FOLDER = Path(__file__).parent


class PackageBroken(Exception):
    """A file of a package is missing, or is not the pinned one."""


@cache
def table(folder: Path = FOLDER) -> dict[str, Any]:
    """Return what the table says of each package, by name."""
    return tomllib.loads((folder / "npm_packages.toml").read_text("utf-8"))


@cache
def imported() -> dict[str, str]:
    """Return the versions of the packages that scripts import by name."""
    return {name: about["version"] for name, about in table().items() if "source" in about}


def check(folder: Path | None = None) -> None:
    """Compare every file of the realm with its pinned digest; ``folder`` replaces FOLDER. Raises PackageBroken."""
    for name, about in table(folder or FOLDER).items():
        for path in about["files"] if "source" not in about else ():
            read(name, path, folder or FOLDER)


def read(name: str, path: str, folder: Path | None = None) -> str:
    """Return a file of a package once its digest was compared. Raises PackageBroken."""
    folder = folder or FOLDER
    about = table(folder)[name]
    file = folder / "npm" / name / path
    try:
        content = file.read_bytes()
    except OSError:
        raise PackageBroken(f"{file} is missing") from None
    if hashlib.sha256(content).hexdigest() != about["files"][path]:
        raise PackageBroken(f"{file} is not the file of {name} {about['version']}")
    return content.decode("utf-8")


def declarations() -> dict[str, str]:
    """Return the packages' own TypeScript declarations by path: a folder for each package. Raises PackageBroken."""
    return {
        f"{name}/{path}": text for name in imported() for path, text in json.loads(read(name, "types.json")).items()
    }
