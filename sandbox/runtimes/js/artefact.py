"""Cache of the baked realm: its key, its folder and the check of its owner. For the parent process; workers only get paths.

A compiled module is machine code, so its author controls the worker. It is read only from folders and files that this user or root owns and
that others cannot write, and its SHA-256 must match the stored one.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from lodger.sandbox.errors import SandboxError
from lodger.sandbox.runtimes.js.guest import GUEST_SHA256
from lodger.sandbox.runtimes.libwasmtime import GUEST
from lodger.stdlib import npm_packages

_BAKE_SECONDS = 120
#: Number of realms that the cache keeps, most recently used first: those of several versions, and of the escape suite.
_KEPT = 48
_FORMAT = "1"


class RealmUnavailable(SandboxError):
    """The realm of runtime ``quickjs`` cannot be baked or read here."""


@dataclass(frozen=True, slots=True)
class Artefact:
    """A baked realm: the compiled module, the addresses of its entry points, and the library that loads it."""

    libwasmtime: Path
    module: Path
    numbers: str

    def settings(self) -> dict[str, str]:
        """Return the settings for :meth:`lodger.sandbox.runtime.Runtime.prepare` of ``quickjs``."""
        return {"library": str(self.libwasmtime), "artefact": str(self.module), "numbers": self.numbers}


def find_library() -> Path:
    """Return the path of libwasmtime in the wasmtime package, without importing it."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    return _package("wasmtime") / f"{sys.platform}-{machine}" / "_libwasmtime.so"


def find_guest() -> Path:
    """Return the path of the guest in the quickjs_rs package, without importing it."""
    return _package("quickjs_rs") / "_guest.wasm"


def _package(name: str) -> Path:
    """Return the folder of an installed package."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise RealmUnavailable(
            "package_missing",
            f"the package {name} is not installed",
            fix="install lodger again with pip into the same environment",
        )
    return Path(next(iter(spec.submodule_search_locations)))


def library_files() -> list[str]:
    """Return the names of the files in the order of evaluation, relative to stdlib/js: those of order.txt, then capabilities by name.

    Raises:
        RealmUnavailable: a file of an npm package is missing.
    """
    folder = files("lodger.stdlib") / "js"
    _check_packages()
    first = (folder / "order.txt").read_text("utf-8").split()
    return [*first, *sorted(each.name for each in folder.iterdir() if fnmatchcase(each.name, "cap-*.js"))]


def _check_packages() -> None:
    """Raise RealmUnavailable if a file of a pinned npm package is missing or another one."""
    try:
        npm_packages.check()
    except npm_packages.PackageBroken as broken:
        raise RealmUnavailable(
            "package_missing",
            "a file of an npm package that the script API contains is missing or unknown",
            why=str(broken),
            fix="install lodger again with pip: its build fetches the file",
        ) from None


def read_sources() -> list[tuple[str, str]]:
    """Return names and texts of the standard library in the order of evaluation. Raises RealmUnavailable."""
    folder = files("lodger.stdlib") / "js"
    return [(name, (folder / name).read_text("utf-8")) for name in library_files()]


def realm_key(sources: list[tuple[str, str]]) -> str:
    """Return a hash of everything that the realm depends on: guest, wasmtime, engine settings, host functions, library, CPU."""
    parts = [
        _FORMAT,
        GUEST_SHA256,
        version("wasmtime"),
        GUEST.text(),
        platform.machine(),
        processor(),
    ]
    ours = files("lodger.sandbox.runtimes")
    modules = ("js/bake", "js/guest", "js/machine", "js/rejections", "libwasmtime")
    parts += [(ours / f"{module}.py").read_text("utf-8") for module in modules]
    parts += [f"{name}\0{text}" for name, text in sources]
    return hashlib.sha256("\0\0".join(parts).encode()).hexdigest()[:32]


def processor() -> str:
    """Return the features of this CPU, which the compiler uses: a cache in a shared home folder may serve several machines."""
    try:
        with Path("/proc/cpuinfo").open() as lines:
            return next(
                (line.partition(":")[2].strip() for line in lines if line.startswith(("flags", "Features"))),
                "",
            )
    except OSError:
        return platform.processor()


def candidates(folder: Path | None = None) -> Iterator[Path]:
    """Yield the cache folders to try, best first."""
    if folder is not None:
        yield folder.absolute()
        return
    home = os.environ.get("XDG_CACHE_HOME")
    if home and Path(home).is_absolute():
        yield Path(home) / "lodger"
    elif os.environ.get("HOME"):
        yield Path(os.environ["HOME"]) / ".cache" / "lodger"
    yield Path(tempfile.gettempdir()) / f"lodger-{os.geteuid()}"


def is_ours(path: Path) -> bool:
    """Return whether only this user or root can write to a path; False for a symbolic link."""
    try:
        about = path.lstat()
    except OSError:
        return False
    kind = stat.S_ISDIR(about.st_mode) or stat.S_ISREG(about.st_mode)
    return kind and about.st_uid in (os.geteuid(), 0) and not about.st_mode & 0o022


def ensure(folder: Path | None = None, *, progress: Callable[[str], None] | None = None) -> Artefact:
    """Return the baked realm from the cache, or bake it, which takes about a second.

    Args:
        folder: the cache; by default ``lodger`` below XDG_CACHE_HOME or ~/.cache, then a private folder below the temporary one.
        progress: called with one sentence when baking begins.

    Raises:
        RealmUnavailable: no folder is writable, or baking failed.
    """
    return baked(read_sources(), folder, progress)


def baked(
    sources: list[tuple[str, str]],
    folder: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Artefact:
    """Return the realm of these sources, from the cache or newly baked; arguments and errors as for :func:`ensure`."""
    key = realm_key(sources)
    made: tuple[bytes, bytes] | None = None
    tried: list[str] = []
    for cache in _usable(folder, tried):
        found = read_baked(cache / key)
        if found is not None:
            return found
        if not os.access(cache, os.W_OK):
            tried.append(f"{cache}: not writable")
            continue
        if made is None:
            if progress:
                progress("building the script realm (once per version)")
            made = _bake(sources)
        try:
            _store(cache, key, *made)
        except OSError as error:
            tried.append(f"{cache}: {error.strerror}")
            continue
        found = read_baked(cache / key)
        if found is not None:
            return found
        tried.append(f"{cache}: the built realm could not be read back")
    raise _no_folder(tried)


def writable_folder(folder: Path | None = None) -> Path:
    """Return the first cache folder that can be written to; ``folder`` as for :func:`ensure`. Raises RealmUnavailable."""
    tried: list[str] = []
    for cache in _usable(folder, tried):
        if os.access(cache, os.W_OK):
            return cache
        tried.append(f"{cache}: not writable")
    raise _no_folder(tried)


def _usable(folder: Path | None, tried: list[str]) -> Iterator[Path]:
    """Yield the cache folders that only this user can write to, created if they are missing, and note why others are left out."""
    for cache in candidates(folder):
        try:
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            tried.append(f"{cache}: {error.strerror}")
            continue
        if not is_ours(cache):
            tried.append(f"{cache}: belongs to another user, or other users can write to it")
        elif os.statvfs(cache).f_flag & os.ST_NOEXEC:
            tried.append(f"{cache}: on a file system without programs (noexec), and a realm is machine code")
        else:
            yield cache


def _no_folder(tried: list[str]) -> RealmUnavailable:
    """Return the error of a machine without a usable cache folder; ``tried`` says why each is none."""
    return RealmUnavailable(
        "no_cache_folder",
        "no folder can be used for the cache of the script realm",
        why="; ".join(tried),
        fix="set LODGER_CACHE_DIR to a folder that only this user may write to",
    )


def read_baked(place: Path) -> Artefact | None:
    """Return the realm in a folder, or None if it is missing, incomplete, or writable by others."""
    module, numbers = place / "realm.cwasm", place / "realm.numbers"
    if not all(is_ours(path) for path in (place, module, numbers)):
        return None
    words = numbers.read_text("ascii").split()
    noted = words[-1].removeprefix("sha256=") if words else ""
    if hashlib.sha256(module.read_bytes()).hexdigest() != noted:
        return None
    with contextlib.suppress(OSError):
        os.utime(place)
    return Artefact(find_library(), module, " ".join(words[:-1]))


def _prune(cache: Path) -> None:
    """Delete the least recently used realms; workers that have one mapped keep it."""
    realms = [place for place in cache.iterdir() if (place / "realm.numbers").exists() and is_ours(place)]
    realms.sort(key=lambda place: place.stat().st_mtime_ns, reverse=True)
    for place in realms[_KEPT:]:
        shutil.rmtree(place, ignore_errors=True)


def _bake(sources: list[tuple[str, str]]) -> tuple[bytes, bytes]:
    """Return the numbers and the module of the sources' realm, baked in a process of its own. Raises RealmUnavailable."""
    # As in the zygote: only the packages beside this one can be imported.
    code = (
        f"import sys; package = type(sys)('lodger'); package.__path__ = [{str(Path(__file__).parents[3])!r}]; "
        "sys.modules['lodger'] = package; from lodger.sandbox.runtimes.js.bake import main; main()"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(find_library()), str(find_guest())]
    text = "\0".join(part for pair in sources for part in pair)
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and module
            command, input=text.encode(), capture_output=True, timeout=_BAKE_SECONDS, check=False, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RealmUnavailable(
            "bake_failed",
            "the script realm could not be built",
            why=f"its process: {getattr(error, 'strerror', None) or f'no end within {_BAKE_SECONDS} s'}",
            fix="give this machine or container room for more processes, memory and processor time",
        ) from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        start = max(
            (at for at, line in enumerate(said) if line[:1].strip()), default=0
        )  # the exception, after the traceback
        start = max((at for at, line in enumerate(said) if line.startswith("RuntimeError:")), default=start)
        raise RealmUnavailable(
            "bake_failed",
            "the script realm could not be built",
            why=" ".join(line.strip() for line in said[start:])[:500] or f"exit status {done.returncode}",
            fix="install the pinned versions of wasmtime and quickjs-rs",
        )
    numbers, _, module = done.stdout.partition(b"\n")
    return numbers, module


def _store(cache: Path, key: str, numbers: bytes, module: bytes) -> None:
    """Write a realm into a cache folder."""
    work = Path(tempfile.mkdtemp(prefix=f".{key[:8]}-", dir=cache))
    try:
        for name, data in (("realm.cwasm", module), ("realm.numbers", numbers)):
            with open(work / name, "wb", opener=partial(os.open, mode=0o600)) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        place = cache / key
        if place.exists() and read_baked(place) is None and is_ours(place):
            shutil.rmtree(place)  # incomplete or modified
        try:
            work.rename(place)
        except OSError:
            if read_baked(place) is None:
                raise
        _prune(cache)
    finally:
        shutil.rmtree(work, ignore_errors=True)
