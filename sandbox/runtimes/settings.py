"""Settings of a runtime for its zygote: paths of the files that it loads before the walls are raised. For the parent process."""

from importlib.resources import files
from pathlib import Path

from lodger.sandbox.runtimes.js.artefact import ensure, find_library, library_files
from lodger.sandbox.runtimes.native_libraries import find_binding

_NATIVE_FILE = "native.js"


def runtime_settings(runtime: str, cache: Path | None = None) -> dict[str, str]:
    """Return the settings of a runtime.

    Args:
        runtime: ``quickjs``, ``quickjs-native``, ``wasm`` or ``wasm_compiler``.
        cache: folder of the baked realm of ``quickjs``, which is baked here if it is missing.

    Raises:
        SandboxError: a package is missing, or the realm cannot be baked.
    """
    if runtime == "quickjs":
        return ensure(cache).settings()
    if runtime == "quickjs-native":
        return native_settings()
    # no grace after the CPU limit: there is no soft limit, and log lines are sent at once
    return {"library": str(find_library()), "cpu_grace_ms": "0"}


def native_settings() -> dict[str, str]:
    """Return the settings of ``quickjs-native``. Raises SandboxError."""
    folder = Path(str(files("lodger.stdlib") / "js"))
    paths = [folder / name for name in (_NATIVE_FILE, *library_files())]
    return {
        "binding": str(find_binding()),
        "library": "\n".join(str(path.resolve()) for path in paths),
        "cpu_grace_ms": "0",  # there is no soft CPU limit: the kernel's timer is set to the limit itself
    }
