"""The image of a version: the pages of the guest's memory that compiling the version's modules writes.

A worker of the version's tenant loads the modules, links them and evaluates none: a module before them throws. The pages that differ
from the state of every warm worker are sent to the parent, which gives them as a sealed file to later attempts of the same version; these
map the pages over their memory, copied on write, and import the modules without asking for a source. Whatever an attempt sets for itself
(clock, seed of Math.random, limits, context, grants) is set after that.

The image is data inside the guest's memory, as untrusted as everything there: the host reads none of it, and the parent checks its
layout.
"""

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
#: Unchanged pages between changed ones that are kept, because a further run costs more than they do.
_GAP = 1
#: Largest part of an image in a frame.
PART_BYTES = 1 << 18
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
    """Host functions while modules are compiled: no clock, no randomness, no calls."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self.compiled = False

    def resolve(self, base: bytes, wanted: bytes) -> bytes | None:
        """Return the name of the module that an import means."""
        return self._modules.resolve(base, wanted)

    def source(self, name: bytes) -> bytes | None:
        """Return a module's text."""
        return self._modules.source(name)

    def call(self, operation: int, text: bytes | None) -> bytes | None:
        """Note that all modules are linked."""
        self.compiled = self.compiled or operation == ord("d")
        return None


def compile_into(bundle: bytes, guest: Guest, numbers: dict[str, int], channel: "Channel") -> "NoReturn":
    """Compile the modules and send the image: ARTEFACT frames and DONE with their size, or FAIL if there is none."""
    modules = Modules(bundle)
    host = guest.host = _Compiling(modules)
    before, pointer = guest.peek(0, guest.size()), guest.stack_pointer()
    # As bootstrap.js: without a default export only where there is no other, and a snippet that may be a module.
    module, *places, declares, exports = modules.facts()
    ways = (module, 2) if (not exports if module else declares) else (module,)
    try:
        modules.check()
        for way in ways:
            guest.apply(numbers["compile"], WAYS[way], numbers["undefined"], numbers["scratch"])
            while guest.jobs():
                pass
            if host.compiled:
                break
    except (SourceRefused, Thrown, Trapped, MemoryError, WasmFault):
        host.compiled = False
    runs = _changed_runs(before, guest.peek(0, guest.size()))
    if not host.compiled or guest.stack_pointer() != pointer or len(runs) > MAX_RUNS:
        channel.answer(FAIL, _REFUSED)
        raise AssertionError
    head = IMAGE_HEAD.pack(len(runs), guest.size() // PAGE, len(bundle), way, *places, declares, exports)
    layout = b"".join(RUN.pack(*run) for run in runs) + head
    pages = (guest.peek(first * PAGE, count * PAGE) for first, count in runs)
    sent = 0
    for whole in (bundle + bytes(-len(bundle) % PAGE), *pages, layout):
        for at in range(0, len(whole), PART_BYTES):
            channel.send(ARTEFACT, whole[at : at + PART_BYTES])
        sent += len(whole)
    channel.answer(DONE, b"%d" % sent)
    raise AssertionError


def _changed_runs(before: bytes, after: bytes) -> "list[tuple[int, int]]":
    """Return first page and length of each run of pages that differ; pages beyond the old memory differ if they are not zero."""
    runs: list[tuple[int, int]] = []
    zero = bytes(PAGE)
    for page in range(len(after) // PAGE):
        at = page * PAGE
        old = before[at : at + PAGE] or zero
        if after[at : at + PAGE] == old:
            continue
        if runs and page - sum(runs[-1]) <= _GAP:
            runs[-1] = runs[-1][0], page + 1 - runs[-1][0]
        else:
            runs.append((page, 1))
    return runs
