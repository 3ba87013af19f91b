"""What the guest's engine lacks, added while baking: a tracker of unhandled promise rejections, the end of its stack, and
objects that are not collected.

The engine calls a tracker when a promise is rejected without a handler, and again when a handler is added. No export sets it, so the baker
appends a function to the module and writes its table index into the engine's memory. The function keeps unhandled rejections in an array of
the bootstrap, where JavaScript reads them as ordinary values; it calls no host function.

The engine compares its stack pointer with a limit that nothing sets, either: the baker writes it into the engine's memory.
The function that throws the RangeError lowers the limit, so that the hook that makes the error's stack has room to run; the
realm puts it back when that is done.
"""

import struct
from collections.abc import Iterator

TYPE, FUNCTION, TABLE, ELEMENT, CODE = 1, 3, 4, 9, 10
#: First of the consecutive numbers with which bootstrap.js fills its array, so that the baker finds it.
FIRST_MARK = 0x5EED0000
#: Maximum number of rejections: pairs of promise and reason after the count.
MAX_KEPT = 256
#: Bytes from ``JSRuntime.stack_limit``, which is 0 in a guest that checks nothing, to its field for the tracker.
_STACK_LIMIT = 44
_STACK_LIMIT_FIELD, _RUNTIME_FIELD = 136, 16  # in JSRuntime, and of JSRuntime in JSContext
_SIZE_FIELD, _OBJECTS_FIELD, _THRESHOLD_FIELD = (
    24,
    88,
    116,
)  # in JSRuntime: malloc_size, gc_obj_list, malloc_gc_threshold
_LEAST_OBJECTS = 1000
#: At which a collection begins in a new engine; it counts 8 bytes for each block of memory.
_THRESHOLD = 256 << 10
#: Bytes by which the limit is lowered.
_HOOK_BYTES = 128 << 10
_OVERFLOW = b"Maximum call stack size exceeded\0"
_MARKS = struct.pack(f"<{1 + 2 * MAX_KEPT}Q", *range(FIRST_MARK, FIRST_MARK + 1 + 2 * MAX_KEPT))

#: Properties of the guest: number of imported functions, type of the tracker (context, promise, reason, is_handled, opaque).
_IMPORTED = 13
_TRACKER_TYPE = bytes.fromhex("60057f7e7e7f7f00")

# The tracker. Parameters 0 context, 1 promise, 2 reason, 3 is_handled, 4 the array; locals 5 count, 6 end, 7 place. A value has 64 bits: a
# tag in the upper half, an address in the lower one for tags from -9 to -1; the object there begins with its reference count.
_REFERS = bytes.fromhex("4220 88 a7 41 77 4f")  # … >> 32 >= -9, unsigned


def _counted(value: bytes, step: int) -> bytes:
    """Return instructions that add ``step`` (0x01, or 0x7f for -1) to a value's reference count; ``value`` pushes it on the stack."""
    refer = value + bytes.fromhex("a7")
    body = refer + refer + bytes.fromhex("280200 41") + bytes((step,)) + bytes.fromhex("6a 360200")
    return value + _REFERS + bytes.fromhex("0440") + body + bytes.fromhex("0b")


def _load(offset: int) -> bytes:
    """Return the instructions that load a value of a structure."""
    return bytes.fromhex("2007 2903") + bytes((offset,))


_BODY = b"".join(
    (
        bytes.fromhex("01 03 7f"),  # three locals of i32
        bytes.fromhex("2004 280200 2105"),  # count = array[0]
        bytes.fromhex("2004 4108 6a 2005 4104 74 6a 2106"),  # end = array + 8 + 16 * count
        bytes.fromhex("2003 0440"),  # if is_handled
        bytes.fromhex("2004 4108 6a 2107"),  # place = array + 8
        bytes.fromhex("0240 0340"),  # block, loop
        bytes.fromhex("2007 2006 4f 0d01"),  # leave at the end
        _load(0) + bytes.fromhex("2001 51 0440"),  # if it is this promise
        _counted(_load(0), 0x7F),
        _counted(_load(8), 0x7F),
        bytes.fromhex("2007 2007 4110 6a 2006 2007 6b 4110 6b fc0a0000"),  # the later ones move down
        bytes.fromhex("2006 4110 6b 4200 370300 2006 4108 6b 4200 370300"),  # the last pair is 0
        bytes.fromhex("2004 2005 4101 6b 360200 0f 0b"),  # array[0] = count - 1; return
        bytes.fromhex("2007 4110 6a 2107 0c00 0b 0b"),  # the next pair
        bytes.fromhex("05"),  # else
        bytes.fromhex("2005 41") + b"\x80\x02" + bytes.fromhex("49 0440"),  # if count < 256
        bytes.fromhex("2006 2001 370300 2006 2002 370308"),  # promise and reason at the end
        _counted(bytes.fromhex("2001"), 0x01),
        _counted(bytes.fromhex("2002"), 0x01),
        bytes.fromhex("2004 2005 4101 6a 360200 0b"),  # array[0] = count + 1
        bytes.fromhex("0b 0b"),
    )
)


def leb(value: int, *, signed: bool = False) -> bytes:
    """Return a number as LEB128."""
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        if (not signed and value == 0) or (
            signed and ((value == 0 and not byte & 0x40) or (value == -1 and byte & 0x40))
        ):
            return bytes(out) + bytes((byte,))
        out.append(byte | 0x80)


def unleb(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number and the offset after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def sections(wasm: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and body of each section of a module."""
    at = 8
    while at < len(wasm):
        kind = wasm[at]
        size, at = unleb(wasm, at + 1)
        yield kind, wasm[at : at + size]
        at += size


class Tracker:
    """The function that is appended to the guest, and its index in the function table.

    Raises:
        RuntimeError: the guest differs from the pinned one.
    """

    def __init__(self, wasm: bytes, image: bytes, stack_limit: int) -> None:
        bodies = dict(sections(wasm))
        self._overflow = image.find(_OVERFLOW)
        self._stack_limit = stack_limit
        self._type = _types(bodies[TYPE]).index(_TRACKER_TYPE)
        self._function = _IMPORTED + unleb(bodies[FUNCTION], 0)[0]
        table = bodies[TABLE]
        self.place, at = unleb(table, 3)
        if table[:3] != b"\x01\x70\x01" or unleb(table, at) != (self.place, len(table)):
            raise RuntimeError("the guest's table is not a single bounded table as expected")
        element = bodies[ELEMENT]
        if element[:5] != b"\x01\x00\x41\x01\x0b" or unleb(element, 5)[0] != self.place - 1:
            raise RuntimeError("the guest's element section has an unexpected form")

    def section(self, kind: int, body: bytes) -> bytes:
        """Return the body of a section with the tracker added; other sections unchanged."""
        if kind == TABLE:
            return b"\x01\x70\x01" + leb(self.place + 1) * 2
        if kind == FUNCTION:
            return _appended(body, leb(self._type))
        if kind == CODE:
            return _appended(_roomy(body, self._overflow, self._stack_limit - _HOOK_BYTES), leb(len(_BODY)) + _BODY)
        if kind == ELEMENT:
            return body[:5] + _appended(body[5:], leb(self._function))
        return body

    def set_in(self, image: bytes) -> bytes:
        """Return the engine's memory with the tracker and the stack's lowest address set and the array of bootstrap.js emptied."""
        array = image.find(_MARKS)
        if array < 0 or image.find(_MARKS, array + 1) >= 0:
            raise RuntimeError("the array for rejections must occur exactly once in the guest's memory")
        at = _runtime_field(image)
        made = bytearray(image)
        made[array : array + len(_MARKS)] = bytes(len(_MARKS))
        struct.pack_into("<II", made, at, self.place, array)
        struct.pack_into("<I", made, at - _STACK_LIMIT, self._stack_limit)
        _leave_out(made, at - _STACK_LIMIT - _STACK_LIMIT_FIELD)
        return bytes(made)


def _leave_out(image: bytearray, runtime: int) -> None:
    """Take the library's objects out of the list of those that the collector of cycles visits, and let it begin later.

    It would write to the count of each object, and so copy a thousand pages in each attempt with a collection. What they refer to counts
    as reachable, which it is. Each object becomes a list of its own, so that the engine can still free it.
    """
    link, number = struct.Struct("<II"), 0  # the one before, the next
    before = objects = runtime + _OBJECTS_FIELD
    at = link.unpack_from(image, objects)[1]
    while at != objects:
        earlier, following = link.unpack_from(image, at)
        if earlier != before:
            break
        link.pack_into(image, at, at, at)
        before, at, number = at, following, number + 1
    size, threshold = (struct.unpack_from("<I", image, runtime + field)[0] for field in (_SIZE_FIELD, _THRESHOLD_FIELD))
    if at != objects or number < _LEAST_OBJECTS or threshold != _THRESHOLD:
        raise RuntimeError("the guest's list of objects, or the threshold of its collector, has an unexpected form")
    link.pack_into(image, objects, objects, objects)
    struct.pack_into("<I", image, runtime + _THRESHOLD_FIELD, size + _THRESHOLD // 2)


def limit_address(image: bytes) -> int:
    """Return the address of the stack's limit in the engine's memory."""
    return _runtime_field(image) - _STACK_LIMIT


def _roomy(code: bytes, overflow: int, lowered: int) -> bytes:
    """Return the code section whose thrower of stack overflows first lowers the stack's limit."""
    address = bytes(overflow >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21)) + bytes(1)  # as linkers write it
    start = (
        bytes.fromhex("2000 41") + address + bytes.fromhex("4100 10")
    )  # the context, the message, no arguments, call
    at = code.find(b"\x00" + start)
    if at < 0 or code.find(b"\x00" + start, at + 1) >= 0:
        raise RuntimeError("expected one function of the guest that throws stack overflows")
    size = code[at - 1]
    call = code[at + 1 : at + size - 1]  # without the number of locals, and the end
    runtime = bytes.fromhex("2000 2802") + leb(_RUNTIME_FIELD)
    store = b"\x41" + leb(lowered, signed=True) + bytes.fromhex("3602") + leb(_STACK_LIMIT_FIELD)
    body = bytes(1) + runtime + store + call + b"\x0b"
    return code[: at - 1] + leb(len(body)) + body + code[at + size :]


def _runtime_field(image: bytes) -> int:
    """Return the address of ``host_promise_rejection_tracker`` in the JSRuntime of quickjs-ng 0.15.

    It follows the interrupt handler with its argument, which are set, and three unset words of promise hooks; after it come its
    argument and the empty list of jobs, which points to itself.
    """
    words = memoryview(image).cast("I")
    found = [
        at
        for at in range(7, len(words) - 1)
        if words[at] == words[at + 1] == 4 * at and words[at - 7] and words[at - 6] and not any(words[at - 5 : at])
    ]
    if len(found) != 1:
        raise RuntimeError(f"expected one address of the rejection tracker, found {len(found)}")
    return 4 * (found[0] - 2)


def _types(body: bytes) -> list[bytes]:
    """Return the function types in the type section of a module."""
    count, at = unleb(body, 0)
    found = []
    for _ in range(count):
        start = at
        size, at = unleb(body, at + 1)
        size, at = unleb(body, at + size)
        at += size
        found.append(body[start:at])
    return found


def _appended(vector: bytes, item: bytes) -> bytes:
    """Return a WebAssembly vector with one more item."""
    count, at = unleb(vector, 0)
    return leb(count + 1) + vector[at:] + item
