"""Parts of a platform for the engine of a command: its file, and with ``--expose`` a Python function of its own."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lodger.engine.core.errors import Usage

if TYPE_CHECKING:
    from lodger.engine import sync
    from lodger.engine.core.functions import PlatformFunction
    from lodger.engine.service.platform_file import PlatformFile

Expose = Annotated[
    str | None,
    typer.Option(
        "--expose",
        metavar="MODULE:FUNCTION",
        help="Function that is called with the (synchronous) engine and exposes tables.",
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--platform",
        metavar="FILE",
        help="File with exposed tables and functions. Default: lodger.toml, if it exists. [env: LODGER_PLATFORM]",
    ),
]


def preparation(expose: str | None, platform: Path | None) -> "Callable[[sync.Engine], None] | None":
    """Return a function that applies the file and the Python function to an engine; None where there is neither.

    Raises:
        InputError: platform_file.
        Usage: expose_unknown.
    """
    tell, file = named(expose) if expose else None, _file(platform)
    if tell is None and file is None:
        return None

    def prepare_engine(engine: "sync.Engine") -> None:
        """Apply the platform's own preparation and file to an engine."""
        if tell is not None:
            tell(engine)
        if file is not None:
            file.apply(engine)

    return prepare_engine


def named(place: str) -> "Callable[[sync.Engine], Any]":
    """Return the function of ``module:function``; the current folder is searched first.

    Raises:
        Usage: it does not exist.
    """
    module, _, function = place.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise Usage("expose_unknown.failed", place=place, reason=error) from None
    finally:
        sys.path.remove("")
    if not callable(found):
        raise Usage("expose_unknown", place=place)
    return found  # type: ignore[no-any-return]  # what it returns is not looked at


def functions(platform: Path | None) -> "list[PlatformFunction]":
    """Return the functions of the platform's file; its tables are not there: nothing says whose rows they would be."""
    from lodger.engine.service import platform_file

    file = _file(platform)
    return [] if file is None else list(platform_file.functions_of(file))


def _file(platform: Path | None) -> "PlatformFile | None":
    """Read the platform's file, if there is one; wings have sections in it."""
    from lodger.engine.core.settings import load
    from lodger.engine.service import platform_file

    place = platform_file.place(load(platform=platform))
    if place is None:
        return None
    import_module("lodger.engine.features")
    return platform_file.PlatformFile(place)
