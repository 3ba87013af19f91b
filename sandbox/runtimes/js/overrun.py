"""The handler of the signal at the CPU limit, which stops built-in functions that loop without asking the host.

At the first signal it makes QuickJS ask the host at its next jump or call. If it has not asked by the next signal, a built-in function
loops: the handler protects the guest's memory, so that its next access is a trap (not while the host works for the guest, where an access
would be a crash). The guest can still describe its place on top of the trapped frames. A signal handler in Python would run only after the
guest has returned, so this one is machine code without calls.
"""

import struct
from ctypes import PyDLL, c_int, c_void_p, memmove

from lodger.sandbox.walls.libc import make_calls, map_anonymous, prepare_call
from lodger.sandbox.walls.syscalls import MACHINE, NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lodger.sandbox.runtimes.js.guest import Guest

_SIGPROF = 27
_READ, _WRITE, _EXECUTE = 1, 2, 4
_LONG = (10_000).to_bytes(4, "little")
_RESERVED = 1 << 32  # bytes of address space of a guest's memory


def _machine_code(counter: int, memory: int, code: "tuple[int, int]") -> bytes:
    """Return the handler for the addresses of QuickJS's interrupt counter, the guest's memory and its code (start, end)."""
    start, size, words = code[0], code[1] - code[0], struct.Struct("<Q").pack
    return (
        b"\x48\xb8" + words(counter)  # mov rax, counter
        + b"\x48\x8b\x8a\xa8\x00\x00\x00"  # mov rcx, [rdx + 168]: the interrupted instruction
        + b"\x48\xbe" + words(start) + b"\x48\x29\xf1"  # mov rsi, start; sub rcx, rsi
        + b"\x48\xbe" + words(size) + b"\x48\x39\xf1"  # mov rsi, size; cmp rcx, rsi
        + b"\x73\x05"  # jae ask
        + b"\x83\x38\x01\x74\x07"  # cmp dword [rax], 1; je protect
        + b"\xc7\x00\x01\x00\x00\x00\xc3"  # ask: mov dword [rax], 1; ret
        + b"\x48\xbf" + words(memory) + b"\x48\xbe" + words(_RESERVED)  # protect: mov rdi, memory; mov rsi, size
        + b"\x31\xd2\xb8" + NUMBER["mprotect"].to_bytes(4, "little")  # xor edx, edx; mov eax, mprotect
        + b"\x0f\x05\xc3"  # syscall; ret
    )  # fmt: skip


def install(guest: "Guest", counter: int, code: "tuple[int, int]") -> None:
    """Handle the signal for this guest and all forks; without effect on processors other than x86-64, where the worker is killed later."""
    library = PyDLL(None)
    handler = c_void_p(1)  # SIG_IGN
    if MACHINE == "x86_64":
        text = _machine_code(guest.base + counter, guest.base, code)
        handler = c_void_p(map_anonymous(len(text)))
        memmove(handler, text, len(text))
        make_calls((prepare_call(NUMBER["mprotect"], handler.value or 0, len(text), _READ | _EXECUTE),))
    library.signal(c_int(_SIGPROF), handler)


def unprotect(guest: "Guest", counter: int) -> None:
    """Make a protected guest's memory accessible again, for the time that it needs to describe its place."""
    make_calls((prepare_call(NUMBER["mprotect"], guest.base, guest.size(), _READ | _WRITE),))
    guest.poke(counter, _LONG)
