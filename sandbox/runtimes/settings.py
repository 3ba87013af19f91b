"""What a zygote is told of its runtime: the paths of the files that it loads before its walls rise. The parent's side."""

from importlib.resources import files
from pathlib import Path

from lodger.sandbox.runtimes.js.artefact import ensure, find_library, library_files
from lodger.sandbox.runtimes.native_libraries import find_binding

_NATIVE_FILE = "native.js"


def runtime_settings(runtime: str, cache: Path | None = None, *, metered: bool = False) -> dict[str, str]:
    """Return the settings of a runtime.

    Args:
        runtime: ``quickjs``, ``quickjs-native``, ``wasm`` or ``wasm_compiler``.
        cache: folder of the baked realm of ``quickjs``, which is made here when it is missing.
        metered: also the metered realm.

    Raises:
        SandboxError: a package is missing, or the realm cannot be baked.
    """
    if runtime == "quickjs":
        return ensure(cache, fuel=metered).settings()
    if runtime == "quickjs-native":
        return native_settings()
    # no grace after the CPU time: there is no soft stop that would need it, and each log line has left by then
    return {"library": str(find_library()), "cpu_grace_ms": "0"}


def native_settings(capabilities: tuple[Path, ...] | None = None) -> dict[str, str]:
    """Give the settings; ``capabilities`` replaces the installed cap-*.js files. Raises SandboxError when the package is missing."""
    folder = Path(str(files("lodger.stdlib") / "js"))
    names = [_NATIVE_FILE, *library_files()]
    paths = [folder / name for name in names if capabilities is None or not name.startswith("cap-")]
    paths += capabilities or ()
    return {
        "binding": str(find_binding()),
        "library": "\n".join(str(path.resolve()) for path in paths),
        "cpu_grace_ms": "0",  # nothing in the worker can stop softly: the kernel's timer stands at the limit itself
    }
