"""The runtime ``quickjs-native`` for JavaScript that the *operator* trusts: QuickJS as native code in the worker, without WebAssembly.

A memory bug of the engine exposes the worker's memory, and only the process walls remain; so a tenant cannot choose this runtime. It is two
to three times faster for objects and JSON than ``quickjs``. Same standard library; one file per script; no soft CPU limit: the kernel's
timer and the parent's deadlines end a script.
"""

import _imp
import ctypes
import os
import resource
import time
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader

from lodger.sandbox.runtimes.answer import Answered
from lodger.sandbox.runtimes.native.guest import ENTRIES, NativeGuest, NativeHostFunctions
from lodger.sandbox.runtimes.native.realm import NativeRealm
from lodger.sandbox.runtimes.warm_up import LIMITS, REHEARSALS, SCRIPT, NullChannel
from lodger.sandbox.runtimes.written import region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_STACK_BYTES = 8 << 20
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # options of mallopt(3)


class _RehearsalGuest:
    """Stand-in for a guest in rehearsals: makes the calls of a first job to the realm and runs no script."""

    host = NativeHostFunctions()
    entries = dict.fromkeys(ENTRIES)
    maximum = 0

    def __init__(self, guest: NativeGuest) -> None:
        self.seed = guest.seed

    def size(self) -> int:
        """Return 0."""
        return 0

    used = size

    def limit(self, memory_bytes: int) -> None:
        """Do nothing."""

    def enter(self, source: bytes) -> None:
        """Do nothing: a rehearsal has no script of an author."""

    def jobs(self) -> int:
        """Return 0: there are no jobs."""
        return 0

    def apply(self, _function: object, _text: bytes, _undefined: int, _scratch: int) -> None:
        """Enter the module, write a log line, send a result and end the attempt."""
        host = self.host
        for letter, text in (("i", b"module"), ("l", b"1rehearsed"), ("d", b"0 null"), ("d", b"0 null")):
            host.call(ord(letter), text)
        raise Answered


def _warm(guest: NativeGuest) -> None:
    """Run the engine's JavaScript a few times before the fork."""
    for _ in range(3):
        guest.apply(guest.entries["warm"], b"", 0, 0)
        while guest.jobs():
            pass


class Runtime:
    """The runtime, held by the zygote."""

    def __init__(self) -> None:
        self._make: tuple[ModuleType, list[str], int, int] | None = None
        self._ready: NativeGuest | None = None

    def prepare(self, settings: dict[str, str]) -> None:
        """Load the engine and evaluate the library. Settings: ``binding`` (path of the extension), ``library`` (paths, one per line)."""
        os.environ["TZ"] = "UTC0"  # otherwise the engine's first date opens /etc/localtime, behind the walls
        time.tzset()
        sources = []
        for path in settings["library"].split("\n"):
            with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib would make every fork slower
                sources.append(file.read())
        # The engine measures from the stack pointer at its creation: a quarter leaves room for Python and for C code between checks.
        stack_bytes = min(_STACK_BYTES, *(size for size in resource.getrlimit(resource.RLIMIT_STACK) if size > 0)) // 4
        self._make = (_binding(settings["binding"]), sources, stack_bytes, region("[stack]")[1])
        self._rehearse(NativeGuest(*self._make))
        guest = self._ready = NativeGuest(*self._make)
        _warm(guest)
        _tidy_heap()
        for _ in range(REHEARSALS):  # the interpreter specialises code after eight runs, and again where that failed
            self._warmed_up(guest)

    def fresh(self) -> NativeRealm:
        """Return the prepared realm (once per process, later ones are new), seeded and warmed up."""
        if self._make is None:
            raise RuntimeError("call prepare() first")
        guest, self._ready = self._ready or NativeGuest(*self._make), None
        return self._warmed_up(guest)

    def _warmed_up(self, guest: NativeGuest) -> NativeRealm:
        """Return a realm on a guest, after a rehearsal whose page faults its job does not have."""
        realm = NativeRealm(guest)
        self._rehearse(_RehearsalGuest(guest))  # type: ignore[arg-type]  # it has the methods that a realm uses here
        realm.reseed()
        guest.apply(guest.entries["touch"], b"", 0, 0)
        guest.jobs()
        return realm

    def _rehearse(self, guest: NativeGuest) -> None:
        """Run a script once, so that its pages are in memory before the fork."""
        realm = NativeRealm(guest, rehearsal=True)
        realm.bound(LIMITS)
        realm.run(SCRIPT, NullChannel())


def _tidy_heap() -> None:
    """Set the allocator's thresholds, and return free memory before the fork."""
    # Returns free heap memory to the kernel and keeps large blocks in separate mappings: otherwise the peak memory of a worker would not
    # count megabytes that it inherits as free.
    libc = ctypes.PyDLL(None)
    for option in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
        libc.mallopt(option, 128 << 10)
    libc.malloc_trim(0)


def _binding(path: str) -> "ModuleType":
    """Return the extension ``_quickjs`` without its package, which imports threads; the zygote has no site-packages."""
    spec = ModuleSpec("_quickjs", ExtensionFileLoader("_quickjs", path), origin=path)
    module: ModuleType = _imp.create_dynamic(spec)
    _imp.exec_dynamic(module)
    module.__spec__ = spec  # as after an ordinary import
    return module
