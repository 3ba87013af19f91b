"""WASI preview 1 for a command without files: three streams, a coarse clock, randomness, sleep and exit.

All functions of preview 1 exist, so that the output of any toolchain can be linked, but there are no descriptors beyond the three streams
(EBADF), no preopened folders, no arguments and no environment. Pointers and lengths are untrusted: each is checked against the memory's
size, and a bad one returns EFAULT to the guest.
"""

from struct import pack, unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lodger.sandbox.runtimes.command.realm import ModuleRealm

SPACE = "wasi_snapshot_preview1"

SUCCESS, BADF, FAULT, INVAL, NOSYS, NOTSOCK, SPIPE = 0, 8, 21, 28, 52, 57, 70

_MASKS = {"i": 0xFFFFFFFF, "I": 0xFFFFFFFFFFFFFFFF}
_RIGHT_READ, _RIGHT_WRITE = 1 << 1, 1 << 6
_MAX_VECTORS = 1024
_MAX_SUBSCRIPTIONS = 64
_MAX_AT_ONCE = 1 << 20
_MILLISECOND_NS = 1_000_000
_CLOCK, _READABLE, _WRITABLE = range(3)
_ABSOLUTE = 1


class OutOfMemoryBounds(Exception):
    """The guest passed an address outside its memory."""


class Exited(Exception):
    """The command called proc_exit."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Wasi:
    """The WASI calls of one attempt; ``command`` is assigned before it starts."""

    def __init__(self) -> None:
        self.command: ModuleRealm | None = None

    def answer(self, name: str, arguments: "list[int]") -> int:
        """Carry out one call and return its errno; raises only :class:`Exited` and exceptions of the command."""
        try:
            return int(_CALLS[name][1](self, *arguments))
        except OutOfMemoryBounds:
            return FAULT

    def _behind(self) -> "ModuleRealm":
        """Return the command that runs; raises if there is none."""
        if self.command is None:
            raise RuntimeError("a call outside any attempt")
        return self.command

    # -- what does not exist --

    def _no_such_descriptor(self, *_arguments: int) -> int:
        """Answer a call on a descriptor that does not exist: EBADF."""
        return BADF

    def _nothing(self, *_arguments: int) -> int:
        """Answer a call that has no effect."""
        return SUCCESS

    def _unknown(self, *_arguments: int) -> int:
        """Answer a call that does not exist here."""
        return NOSYS

    def _no_counts(self, count: int, size: int) -> int:
        """Answer that there are no arguments or environment variables: write two zeros."""
        command = self._behind()
        command.poke(count, bytes(4))
        command.poke(size, bytes(4))
        return SUCCESS

    def _on_stream(self, descriptor: int, *_arguments: int) -> int:
        """Answer a call without effect on a standard stream; EBADF for another descriptor."""
        return SUCCESS if descriptor < 3 else BADF

    def _not_in_a_stream(self, descriptor: int, *_arguments: int) -> int:
        """Answer ESPIPE: a stream has no positions; EBADF for another descriptor."""
        return SPIPE if descriptor < 3 else BADF

    def _no_socket(self, descriptor: int, *_arguments: int) -> int:
        """Answer ENOTSOCK: a stream is no socket; EBADF for another descriptor."""
        return NOTSOCK if descriptor < 3 else BADF

    # -- streams --

    def _fdstat(self, descriptor: int, out: int) -> int:
        """Describe the rights of a standard stream."""
        if descriptor > 2:
            return BADF
        rights = _RIGHT_WRITE if descriptor else _RIGHT_READ
        self._behind().poke(
            out, pack("<B7xQQ", 0, rights, 0)
        )  # unknown file type, so that C libraries buffer as for a pipe
        return SUCCESS

    def _filestat(self, descriptor: int, out: int) -> int:
        """Describe a standard stream as a file."""
        if descriptor > 2:
            return BADF
        self._behind().poke(out, bytes(64))
        return SUCCESS

    def _vectors(self, at: int, count: int) -> "list[tuple[int, int]]":
        """Return addresses and lengths of a vector of buffers."""
        table = self._behind().peek(at, 8 * count)
        return [unpack_from("<II", table, 8 * index) for index in range(count)]

    def _read(self, descriptor: int, at: int, count: int, out: int) -> int:
        """Read from the standard input."""
        command = self._behind()
        if descriptor != 0:
            return BADF
        if count > _MAX_VECTORS:
            return INVAL
        command.poke(out, bytes(4))
        total = 0
        for address, size in self._vectors(at, count):
            size = min(size, _MAX_AT_ONCE)
            command.poke(address + size, b"")  # check the bounds before reading
            data = command.read_input(size)
            command.poke(address, data)
            total += len(data)
            if len(data) < size:
                break
        command.poke(out, pack("<I", total))
        return SUCCESS

    def _write(self, descriptor: int, at: int, count: int, out: int) -> int:
        """Write to the standard output or error."""
        command = self._behind()
        if descriptor not in (1, 2):
            return BADF
        if count > _MAX_VECTORS:
            return INVAL
        command.poke(out, bytes(4))
        write = command.write_output if descriptor == 1 else command.write_log
        total = 0
        for address, size in self._vectors(at, count):
            command.poke(address + size, b"")
            while size:
                some = min(size, _MAX_AT_ONCE)
                write(command.peek(address, some))
                address, size, total = address + some, size - some, total + some
        command.poke(out, pack("<I", total & 0xFFFFFFFF))
        return SUCCESS

    # -- time, chance, the end --

    def _clock_resolution(self, clock: int, out: int) -> int:
        """Write the resolution of a clock, one millisecond."""
        if clock > 1:
            return INVAL
        self._behind().poke(out, pack("<Q", _MILLISECOND_NS))
        return SUCCESS

    def _clock_time(self, clock: int, _precision: int, out: int) -> int:
        """Write the time of a clock in nanoseconds, in whole milliseconds."""
        if clock > 1:  # CPU clocks would be precise timers
            return INVAL
        self._behind().poke(out, pack("<Q", self._now_ms(clock) * _MILLISECOND_NS))
        return SUCCESS

    def _now_ms(self, clock: int) -> int:
        """Return the milliseconds of clock 0, since 1970, or of clock 1, since the start."""
        timeline = self._behind().timeline
        return timeline.elapsed_ms() if clock else timeline.now_us() // 1000

    def _random(self, out: int, count: int) -> int:
        """Write random bytes to the guest's memory."""
        command = self._behind()
        command.poke(out + count, b"")
        while count:
            some = min(count, 1 << 16)
            command.poke(out, command.timeline.random(some))
            out, count = out + some, count - some
        return SUCCESS

    def _poll(self, given: int, out: int, count: int, found: int) -> int:
        """Sleep until the first clock; return at once if a stream is polled, because streams are always ready."""
        command = self._behind()
        if not 0 < count <= _MAX_SUBSCRIPTIONS:
            return INVAL
        table = command.peek(given, 48 * count)
        streams, clocks = [], []
        for at in range(0, 48 * count, 48):
            data, kind = unpack_from("<QB", table, at)
            if kind == _CLOCK:
                clock, timeout, _precision, flags = unpack_from("<I4xQQH", table, at + 16)
                if clock > 1:
                    return INVAL
                timeout_us = timeout // 1000
                if flags & _ABSOLUTE:
                    timeout_us = max(0, timeout_us - self._now_ms(clock) * 1000)
                clocks.append((timeout_us, data))
            elif kind in (_READABLE, _WRITABLE):
                (descriptor,) = unpack_from("<I", table, at + 16)
                good = descriptor == 0 if kind == _READABLE else descriptor in (1, 2)
                streams.append(pack("<QHB5xQH6x", data, SUCCESS if good else BADF, kind, 1, 0))
            else:
                return INVAL
        events = streams
        if not events:
            first = min(timeout for timeout, _ in clocks)
            command.sleep_us(first)
            events = [pack("<QHB21x", data, SUCCESS, _CLOCK) for timeout, data in clocks if timeout == first]
        command.poke(out, b"".join(events))
        command.poke(found, pack("<I", len(events)))
        return SUCCESS

    def _exit(self, code: int) -> int:
        """End the module by its exit code: raises Exited."""
        raise Exited(code)


#: Name to parameters (i is i32, I is i64) and what answers the call.
_CALLS: "dict[str, tuple[str, Callable[..., int]]]" = {
    "args_get": ("ii", Wasi._nothing),
    "args_sizes_get": ("ii", Wasi._no_counts),
    "clock_res_get": ("ii", Wasi._clock_resolution),
    "clock_time_get": ("iIi", Wasi._clock_time),
    "environ_get": ("ii", Wasi._nothing),
    "environ_sizes_get": ("ii", Wasi._no_counts),
    "fd_advise": ("iIIi", Wasi._no_such_descriptor),
    "fd_allocate": ("iII", Wasi._no_such_descriptor),
    "fd_close": ("i", Wasi._on_stream),
    "fd_datasync": ("i", Wasi._on_stream),
    "fd_fdstat_get": ("ii", Wasi._fdstat),
    "fd_fdstat_set_flags": ("ii", Wasi._on_stream),
    "fd_fdstat_set_rights": ("iII", Wasi._no_such_descriptor),
    "fd_filestat_get": ("ii", Wasi._filestat),
    "fd_filestat_set_size": ("iI", Wasi._no_such_descriptor),
    "fd_filestat_set_times": ("iIIi", Wasi._no_such_descriptor),
    "fd_pread": ("iiiIi", Wasi._not_in_a_stream),
    "fd_prestat_dir_name": ("iii", Wasi._no_such_descriptor),
    "fd_prestat_get": ("ii", Wasi._no_such_descriptor),
    "fd_pwrite": ("iiiIi", Wasi._not_in_a_stream),
    "fd_read": ("iiii", Wasi._read),
    "fd_readdir": ("iiiIi", Wasi._no_such_descriptor),
    "fd_renumber": ("ii", Wasi._no_such_descriptor),
    "fd_seek": ("iIii", Wasi._not_in_a_stream),
    "fd_sync": ("i", Wasi._on_stream),
    "fd_tell": ("ii", Wasi._not_in_a_stream),
    "fd_write": ("iiii", Wasi._write),
    "path_create_directory": ("iii", Wasi._no_such_descriptor),
    "path_filestat_get": ("iiiii", Wasi._no_such_descriptor),
    "path_filestat_set_times": ("iiiiIIi", Wasi._no_such_descriptor),
    "path_link": ("iiiiiii", Wasi._no_such_descriptor),
    "path_open": ("iiiiiIIii", Wasi._no_such_descriptor),
    "path_readlink": ("iiiiii", Wasi._no_such_descriptor),
    "path_remove_directory": ("iii", Wasi._no_such_descriptor),
    "path_rename": ("iiiiii", Wasi._no_such_descriptor),
    "path_symlink": ("iiiii", Wasi._no_such_descriptor),
    "path_unlink_file": ("iii", Wasi._no_such_descriptor),
    "poll_oneoff": ("iiii", Wasi._poll),
    "proc_exit": ("i", Wasi._exit),
    "proc_raise": ("i", Wasi._unknown),
    "random_get": ("ii", Wasi._random),
    "sched_yield": ("", Wasi._nothing),
    "sock_accept": ("iii", Wasi._no_socket),
    "sock_recv": ("iiiiii", Wasi._no_socket),
    "sock_send": ("iiiii", Wasi._no_socket),
    "sock_shutdown": ("ii", Wasi._no_socket),
}
#: Name to parameters and result: an errno of every call but the one that does not return.
SIGNATURES = {name: (types, "" if name == "proc_exit" else "i") for name, (types, _) in _CALLS.items()}


def unsigned(formats: str, values: "list[int]") -> "list[int]":
    """Return raw values as unsigned numbers."""
    return [value & _MASKS[letter] for letter, value in zip(formats, values, strict=True)]
