"""What a zygote of ``quickjs-native`` is told: where the binding and the library's files lie. The parent's side."""

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from lodger.sandbox.errors import SandboxError
from lodger.sandbox.runtimes.artefact import library_files

_DOOR = "native.js"


def native_settings(capabilities: tuple[Path, ...] | None = None) -> dict[str, str]:
    """Give the settings; ``capabilities`` replaces the installed cap-*.js files. Raises SandboxError when the package is missing."""
    spec = find_spec("_quickjs")
    if spec is None or spec.origin is None:
        raise SandboxError(
            "package_missing",
            "the package quickjs-ng is not installed",
            why="runtime quickjs-native runs on it",
            fix="pip install lodger again, into the same environment",
        )
    folder = Path(str(files("lodger.stdlib") / "js"))
    names = [_DOOR, *library_files()]
    paths = [folder / name for name in names if capabilities is None or not name.startswith("cap-")]
    paths += capabilities or ()
    return {
        "binding": spec.origin,
        "library": "\n".join(str(path.resolve()) for path in paths),
        "cpu_grace_ms": "0",  # nothing in the worker can stop softly: the kernel's timer stands at the limit itself
    }
