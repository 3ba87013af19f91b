"""Known errors of the engines and packages inside the sandbox: a list of Lodger's, compared with the installed versions. For the parent."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

from lodger.stdlib import npm_packages


@dataclass(frozen=True, slots=True)
class Advisory:
    """One known error.

    Attributes:
        engines: engines that have or had it: keys of the list's table ``engines``.
        fixed_in: the first version of the engine without it; "" if there is none.
        contained_by: the wall that contains it; "" if none is known.
    """

    id: str
    engines: tuple[str, ...]
    summary: str
    fixed_in: str = ""
    contained_by: str = ""


@dataclass(frozen=True, slots=True)
class EngineState:
    """One engine and its open errors.

    Attributes:
        installed: version of the installed package; "" if it is missing.
        version: version of the engine inside the pinned package.
        open: ids of errors that this version has.
        uncontained: those of them that nothing is known to contain, and "unlisted version" if another package is installed.
    """

    engine: str
    package: str
    installed: str
    version: str
    open: tuple[str, ...]
    uncontained: tuple[str, ...]


@cache
def _list() -> dict[str, Any]:
    """Return the TOML list of known errors, parsed."""
    return tomllib.loads((files("lodger.sandbox") / "advisories.toml").read_text("utf-8"))


def checked() -> str:
    """Return the date on which the list was last compared with the upstream advisories."""
    return str(_list()["checked"])


def advisories() -> tuple[Advisory, ...]:
    """Return the known advisories for the engines."""
    return tuple(Advisory(**{**each, "engines": tuple(each["engines"])}) for each in _list()["advisory"])


def examine() -> tuple[EngineState, ...]:
    """Return each engine, and each npm package that scripts can import, with the errors that the installed version has."""
    packages = {
        name: {"package": f"npm:{name}", "pinned": about["version"], "version": about["version"]}
        for name, about in npm_packages.table().items()
    }
    return tuple(_state(name, each) for name, each in (_list()["engines"] | packages).items())


def _state(engine: str, pin: dict[str, str]) -> EngineState:
    """Return the installed version of an engine with its open advisories."""
    try:
        installed = pin["pinned"] if pin["package"].startswith("npm:") else version(pin["package"])
    except PackageNotFoundError:
        installed = ""
    found = [each for each in advisories() if engine in each.engines and _before(pin["version"], each.fixed_in)]
    uncontained = [each.id for each in found if not each.contained_by]
    if installed not in {"", pin["pinned"]}:
        uncontained.append("unlisted version")
    return EngineState(
        engine, pin["package"], installed, pin["version"], tuple(each.id for each in found), tuple(uncontained)
    )


def _before(present: str, fixed_in: str) -> bool:
    """Whether a version is older than the one with the fix."""
    return not fixed_in or _parts(present) < _parts(fixed_in)


def _parts(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, which can be compared."""
    return tuple(int(part) for part in re.findall(r"\d+", text))
