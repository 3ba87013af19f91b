"""The baker: boots a realm with the standard library and writes its memory into the data segment of a new module.

Runs in a separate process (the compiler's threads never end), without any tenant code. Booting from source in each worker takes 6 to
13 ms, copying a snapshot of the memory 1.3 ms and 500 page faults; mapping the baked module takes 10 µs and the pages that a job uses.
"""

import ctypes
import hashlib
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from lodger.sandbox.runtimes.js.guest import GUEST_SHA256, STACK_BYTES, TABLE, Guest, HostFunctions
from lodger.sandbox.runtimes.js.machine import Machine
from lodger.sandbox.runtimes.js.rejections import Tracker, leb, limit_address, sections

if TYPE_CHECKING:
    from collections.abc import Callable

_OPERATIONS = b"saldethrqx"  # the host functions that bootstrap.js takes over
_MEMBERS = ("start", "settle", "tick", "stuck", "halted", "warm", "touch", "compile", "evaluate")
_PAGE = 4096
_WASM_PAGE = 65536
_LARGEST_GAP, _MAX_GAP, _GAP_STEP = 1 << 20, 1 << 16, 8  # bytes
_BOOT_BYTES = 64 << 20
#: Part of the stack below the engine's limit, for functions that do not check it and for what reports that it was reached.
_STACK_RESERVE = 256 << 10
#: The engine keeps all shapes of objects in one table and never makes it smaller. Doubling it writes to every shape of the library, on a
#: hundred pages: it begins with room for several hundred shapes of a script.
_MANY_SHAPES = b"{ const made = []; for (let i = 0; i < 1000; i++) made.push(Object.create({})); }"
_OBJECT_BYTES, _OBJECTS = 48, 6000  # size of an object in the engine; more of them are not worth their memory
_INTERRUPT_COUNT = 10000  # JS_INTERRUPT_COUNTER_INIT of quickjs-ng
_CUSTOM, _MEMORY, _GLOBAL, _EXPORT, _DATA, _DATA_COUNT = 0, 5, 6, 7, 11, 12
_TABLE_KIND = 1  # of an export


class _BootFunctions(HostFunctions):
    def __init__(self, clock_us: int) -> None:
        self._clock_us = clock_us
        self.interrupts: Callable[[], None] = lambda: None

    def interrupted(self) -> bool:
        self.interrupts()
        return False

    def clock_us(self) -> int:
        return self._clock_us


def boot(machine: Machine, sources: list[tuple[str, str]], clock_us: int) -> tuple[Guest, dict[str, int]]:
    """Return a realm with the sources evaluated, and the addresses of its entry points."""
    guest = machine.instance(_BOOT_BYTES)
    guest.host = _BootFunctions(clock_us)
    scratch = guest.call("qjs_alloc", 64)
    stack = guest.call("qjs_alloc", STACK_BYTES)
    guest.evaluate(_MANY_SHAPES, scratch)
    names = _hold_names(guest, sources, scratch)
    _make_room(guest)
    world = guest.call("global_object")
    for letter in _OPERATIONS:
        name = guest.give(bytes((letter,)), 0)
        function = guest.call("new_function", name, 1)
        key = guest.give(b"$" + bytes((letter,)), 0)
        guest.call("set_prop", world, key, 2, function)
    glue = 0
    for file, text in sources:
        source = text.encode()
        if not glue:
            glue = guest.evaluate(source, scratch)
            key = guest.give(b"$lodger", 0)
            guest.call("set_prop", world, key, 7, glue)
            continue
        try:
            guest.evaluate(
                b'(function ($, module) { "use strict";'
                + source
                + b"\n})(globalThis.$lodger, globalThis.$lodger.module)",
                scratch,
            )
        except Exception as error:
            raise RuntimeError(f"{file}: {error}") from error
    guest.evaluate(b"delete globalThis.$lodger", scratch)
    guest.call("free_value", names)
    while guest.jobs():
        pass
    entry = guest.member(glue, "host", scratch)
    numbers = {name: guest.member(entry, name, scratch) for name in _MEMBERS}
    numbers["undefined"] = guest.undefined()
    numbers["scratch"] = scratch
    numbers["stack"] = stack
    for _ in range(3):  # includes lazily created state in the image
        guest.apply(numbers["warm"], b"", numbers["undefined"], scratch)
        while guest.jobs():
            pass
    guest.call("run_gc")
    _fill_gaps(guest)
    return guest, numbers


def _hold_names(guest: Guest, sources: list[tuple[str, str]], scratch: int) -> int:
    """Return the handle of an object with a property of each name in the sources, the most frequent first.

    The engine counts the uses of each name in a block of memory of its own. Made before the sources are evaluated, these lie together, and
    compiling or running a script that has names in common with the library writes to a few pages in place of a hundred.
    """
    words = Counter(word for _file, text in sources for word in re.findall(r"[A-Za-z_$][\w$]*", text, re.ASCII))
    members = b",".join(b'"%s":0' % word.encode() for word, _uses in words.most_common())
    return guest.evaluate(b"({%s})" % members, scratch)


def _make_room(guest: Guest) -> None:
    """Leave free blocks of an object's size, each followed by a small one that stays, so that the library's objects lie together.

    A call of a function counts the uses of its object, and so writes to its page. Otherwise properties and code lie between the objects,
    and the first use of Temporal writes to forty pages more.
    """
    blocks = [(guest.call("qjs_alloc", _OBJECT_BYTES), guest.call("qjs_alloc", 1)) for _ in range(_OBJECTS)]
    for block, _between in blocks:
        guest.call("qjs_free", block, _OBJECT_BYTES)


def _fill_gaps(guest: Guest) -> None:
    """Allocate the free blocks between the library's objects for good, about 200 KiB, but for large ones.

    Compiling the library leaves them everywhere. A job would use the smallest first, and so write to many pages that it otherwise only
    shares, and to others than the rehearsal did. What a job allocates then lies together.
    """
    guest.limit(guest.used())
    large = []
    for size in (*range(_LARGEST_GAP, _MAX_GAP, -_PAGE), *range(_MAX_GAP, 0, -_GAP_STEP)):
        while address := guest.call("qjs_alloc", size):
            if size > _MAX_GAP:
                large.append((address, size))
    for address, size in large:
        guest.call("qjs_free", address, size)
    guest.limit(_BOOT_BYTES)


def _segments(image: bytes) -> list[bytes]:
    """Return the parts of a memory image that are not zero."""
    segments = []
    at, zero = 0, bytes(_PAGE)
    while at < len(image):
        if image[at : at + _PAGE] == zero:
            at += _PAGE
            continue
        end = at
        while end < len(image) and image[end : end + _PAGE] != zero:
            end += _PAGE
        data = image[at:end]
        segments.append(b"\x00\x41" + leb(at, signed=True) + b"\x0b" + leb(len(data)) + data)
        at = end
    return segments


def frozen(wasm: bytes, image: bytes, stack_limit: int) -> bytes:
    """Return the module with the memory image as its data, its stack in the block that ends above ``stack_limit``, its table exported."""
    tracker = Tracker(wasm, image, stack_limit)
    segments = _segments(tracker.set_in(image))
    out = bytearray(wasm[:8])
    for kind, body in sections(wasm):
        if kind == _CUSTOM:
            continue  # names and producers, unused in a worker
        new = tracker.section(kind, body)
        if kind == _MEMORY:
            if body[0] != 1 or body[1] != 0:
                raise RuntimeError("the guest's memory is not a single unbounded memory as expected")
            new = b"\x01\x00" + leb(len(image) // _WASM_PAGE)
        elif kind == _GLOBAL:
            if body[:4] != b"\x01\x7f\x01\x41":
                raise RuntimeError("the guest has globals other than its stack pointer")
            new = b"\x01\x7f\x01\x41" + leb((stack_limit - _STACK_RESERVE + STACK_BYTES) & -16, signed=True) + b"\x0b"
        elif kind == _EXPORT:
            if body[0] >= 0x7F:
                raise RuntimeError("the guest has more exports than expected")
            name = TABLE.encode()
            new = bytes((body[0] + 1,)) + body[1:] + leb(len(name)) + name + bytes((_TABLE_KIND, 0))
        elif kind == _DATA_COUNT:
            new = leb(len(segments))
        elif kind == _DATA:
            new = leb(len(segments)) + b"".join(segments)
        out += bytes((kind,)) + leb(len(new)) + new
    return bytes(out)


def _seed(machine: Machine, differing: list[int], scratch: int) -> int:
    """Return the address of the word, among those that depend on the clock at boot, that seeds Math.random."""

    def draw_random(address: int | None) -> bytes:
        """Return the first random number of a guest, whose seed is written to ``address`` before, if given."""
        guest = machine.instance(_BOOT_BYTES)
        if address is not None:
            guest.poke(address, b"\x5a\xc3\x11\x9e\x70\x2b\xd4\x68")
        drawn = guest.text(guest.evaluate(b"'' + Math.random()", scratch)) or b""
        guest.close()
        return drawn

    plain = draw_random(None)
    found = [address for address in differing if draw_random(address) != plain]
    if len(found) != 1:
        raise RuntimeError(f"expected one word of memory that seeds Math.random, found {len(found)}")
    return found[0]


def _interrupt_counter(machine: Machine, scratch: int) -> int:
    """Return the address of the word that QuickJS counts down to the next call of the host."""
    guest, host = machine.instance(_BOOT_BYTES), _BootFunctions(0)
    images: list[bytes] = []
    host.interrupts = lambda: images.append(guest.peek(0, guest.size()))
    guest.host = host
    guest.evaluate(b"for (let i = 0; i < 30000; i++);", scratch)
    images.append(guest.peek(0, guest.size()))
    guest.close()
    full = _INTERRUPT_COUNT.to_bytes(4, "little")
    first, last = images[0], images[-1]
    found = [
        at
        for at in range(0, len(first), 4)
        if first[at : at + 4] == full and 0 < int.from_bytes(last[at : at + 4], "little") < _INTERRUPT_COUNT
    ]
    if len(found) != 1:
        raise RuntimeError(f"expected one word of memory that counts to the next interrupt, found {len(found)}")
    return found[0]


def bake(library: str, guest_file: str, sources: list[tuple[str, str]]) -> bytes:
    """Return the realm: a line of numbers, and the compiled module."""
    wasm = Path(guest_file).read_bytes()
    if hashlib.sha256(wasm).hexdigest() != GUEST_SHA256:
        raise RuntimeError(f"{guest_file} is not the guest that this version of Lodger was tested with")
    machine = Machine(library)
    machine.take(wasm)
    images = []
    for clock_us in (1_000_000_000_000_000, 1_234_567_890_123_456):
        guest, numbers = boot(machine, sources, clock_us)
        images.append(guest.peek(0, guest.size()))
        guest.close()
    one, two = images
    if len(one) != len(two):
        raise RuntimeError("two boots differ in size")
    differing = [at for at in range(0, len(one), 8) if one[at : at + 8] != two[at : at + 8]]
    numbers["stack_limit"] = numbers.pop("stack") + _STACK_RESERVE
    numbers["stack_limit_at"] = limit_address(two)
    image = frozen(wasm, two, numbers["stack_limit"])
    probe = Machine(library)
    module = probe.take(image)
    numbers["interrupt_counter"] = _interrupt_counter(probe, numbers["scratch"])
    numbers["seed"] = _seed(probe, differing, numbers["scratch"])
    compiled = probe.lib.machine_code(module)
    code = ctypes.string_at(compiled.data, compiled.size)
    words = [f"{name}={value}" for name, value in sorted(numbers.items())]
    words.append("sha256=" + hashlib.sha256(code).hexdigest())
    return " ".join(words).encode() + b"\n" + code


def main() -> None:
    """Bake with paths from the command line and NUL-separated sources from standard input; write the realm to standard output."""
    library, guest_file = sys.argv[1:3]
    parts = sys.stdin.buffer.read().decode().split("\0")
    sources = list(zip(parts[0::2], parts[1::2], strict=True))
    sys.stdout.buffer.write(bake(library, guest_file, sources))
