"""The image of a version: the pages of the guest's memory that compiling and evaluating the version's modules writes.

A worker of the version's tenant loads the modules and links them: a module before them throws. Then it evaluates them. If they read
anything of an attempt (clock, Math.random, limits, context, an answer of the host), leave jobs or take too much time or memory, the image
has them compiled only, and each attempt evaluates them. The pages that differ from the state of every warm worker are sent to the parent,
which gives them as a sealed file to later attempts of the same version; these map the pages over their memory, copied on write. Whatever an
attempt sets for itself is set after that.

The image is data inside the guest's memory, as untrusted as everything there: the host reads none of it, and the parent checks its
layout.
"""

import time

from lodger.sandbox.frames import ARTEFACT, DONE, FAIL, IMAGE_HEAD, MAX_RUNS, PAGE, RUN
from lodger.sandbox.runtimes.js.guest import Guest, HostFunctions, Thrown, Trapped
from lodger.sandbox.runtimes.js.modules import WAYS, Modules, SourceRefused
from lodger.sandbox.runtimes.libwasmtime import WasmFault
from lodger.sandbox.runtimes.written import view
from lodger.sandbox.walls.libc import make_calls, map_readable, prepare_call
from lodger.sandbox.walls.syscalls import NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from lodger.sandbox.runtime import Channel

_WASM_PAGE = 65536
#: The length of a guest's view of its memory: a view of another length would make a type, which costs a worker 100 page faults.
_RESERVED = 1 << 32
#: Largest part of an image in a frame.
PART_BYTES = 1 << 18
#: Promise jobs of an import whose modules make none: one loads and evaluates them, two pass on the namespace.
_JOBS = 3
#: Maximum number of pages that an evaluation adds to an image: images of all tenants share the memory.
_MAX_ADDED = 1024
#: Largest memory limit of versions that are evaluated: a node reserves none for it.
_MAX_MEMORY_BYTES = 128 << 20
_REFUSED = b"\x0dcompile_error" + b'{"name":"SyntaxError","message":"the modules cannot be compiled in advance"}'


def map_over(guest: Guest, descriptor: int, layout: bytes, memory_bytes: int) -> memoryview:
    """Map an image's pages over the guest's memory, close its file and return the bundle in it. Raises WasmFault if they do not fit."""
    _count, pages, bundle_bytes, *_facts = IMAGE_HEAD.unpack_from(layout)
    more = pages * PAGE - guest.size()
    if more < 0 or more % _WASM_PAGE:
        raise WasmFault("an image is not of this memory")
    guest.limit(max(memory_bytes, guest.size()))
    if more:
        guest.grow(more // _WASM_PAGE)
    calls, offset = [], -(-bundle_bytes // PAGE) * PAGE
    at = map_readable(descriptor, max(bundle_bytes, 1))
    for first, count in RUN.iter_unpack(layout[IMAGE_HEAD.size :]):
        calls.append(guest.load_file(descriptor, offset, first * PAGE, count * PAGE))
        offset += count * PAGE
    make_calls((*calls, prepare_call(NUMBER["close"], descriptor)))
    return view(at, at + _RESERVED)[:bundle_bytes]


class _Compiling(HostFunctions):
    """Host functions while modules are compiled and evaluated: no clock, no randomness, no calls."""

    def __init__(self, modules: Modules, cpu_ms: int) -> None:
        self.modules = modules
        self.done = self.evaluates = False
        self._deadline = time.process_time_ns() + cpu_ms * 1_000_000

    def clock_us(self) -> int:
        """Return 0 to packages, which do nothing with it. Raises WasmFault for the author's modules: an attempt has a clock of its own."""
        if self.evaluates:
            raise WasmFault("the modules read the clock")
        return 0

    def interrupted(self) -> bool:
        """Return False. Raises WasmFault at the CPU limit: the worker has a little more, to send the image without an evaluation."""
        if time.process_time_ns() >= self._deadline:
            raise WasmFault("the modules take too long")
        return False

    def call(self, operation: int, text: bytes | None) -> bytes | None:
        """Note that all modules are linked or evaluated. Raises WasmFault for all other calls."""
        if operation != ord("d"):
            raise WasmFault("the modules called the host")
        self.done = True
        return None


def compile_into(
    bundle: bytes, guest: Guest, numbers: dict[str, int], limits: dict[str, int], channel: "Channel"
) -> "NoReturn":
    """Compile the modules and send the image: ARTEFACT frames and DONE with their size, or FAIL if there is none."""
    modules = Modules(bundle)
    host = guest.host = _Compiling(modules, limits["cpu_ms"])

    def jobs_of(function: str, message: bytes) -> int:
        """Call a function of the bootstrap, and return the number of promise jobs that ran until none was left."""
        host.done, host.evaluates, ran = False, function == "evaluate", 0
        guest.apply(numbers[function], message, numbers["undefined"], numbers["scratch"])
        while more := guest.jobs():
            ran += more
        return ran

    before, pointer, seed = guest.peek(0, guest.size()), guest.stack_pointer(), guest.peek(numbers["seed"], 8)
    # As bootstrap.js: without a default export only where there is no other, and a snippet that may be a module.
    module, *facts = modules.facts()
    ways = (module, 2) if (not facts[-1] if module else facts[-2]) else (module,)
    size, pages = 0, b""
    runs: list[tuple[int, int]] = []
    try:
        modules.check()
        for way in ways:
            jobs_of("compile", WAYS[way])
            if host.done and guest.stack_pointer() == pointer:
                size, runs, pages = _changes(before, guest, guest.size() // PAGE)
                break
        fits = runs and limits["memory_bytes"] <= _MAX_MEMORY_BYTES
        jobs = fits and jobs_of("evaluate", modules.message(limits, [way, *facts]))
        if host.done and jobs == _JOBS and guest.peek(numbers["seed"], 8) == seed and guest.stack_pointer() == pointer:
            size, runs, pages = _changes(before, guest, len(pages) // PAGE + _MAX_ADDED)
    except (SourceRefused, Thrown, Trapped, MemoryError, WasmFault):
        pass  # without an image, or with one of compiled modules
    if not runs:
        channel.answer(FAIL, _REFUSED)
        raise AssertionError
    head = IMAGE_HEAD.pack(len(runs), size, len(bundle), way, *facts)
    layout = b"".join(RUN.pack(*run) for run in runs) + head
    parts = (bundle, bytes(-len(bundle) % PAGE), pages, layout)
    for part in parts:
        for at in range(0, len(part), PART_BYTES):
            channel.send(ARTEFACT, part[at : at + PART_BYTES])
    channel.answer(DONE, b"%d" % sum(map(len, parts)))
    raise AssertionError


def _changes(before: bytes, guest: Guest, most: int) -> "tuple[int, list[tuple[int, int]], bytes]":
    """Return the number of the guest's pages, first page and length of each run of pages that differ, and these pages.

    Pages beyond the old memory differ if they are not zero. Raises MemoryError if more than ``most`` pages differ, or too many runs.
    """
    pages: list[bytes] = []
    runs: list[tuple[int, int]] = []
    zero, size = bytes(PAGE), guest.size() // PAGE
    for page in range(size):
        at = page * PAGE
        now = guest.peek(at, PAGE)
        if now == (before[at : at + PAGE] or zero):
            continue
        if runs and page == sum(runs[-1]):
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((page, 1))
        pages.append(now)
        if len(pages) > most or len(runs) > MAX_RUNS:
            raise MemoryError
    return size, runs, b"".join(pages)
