"""The probe runtime with access to executable memory before the worker is armed, as runtime wasm has it.

Setting ``probe`` is the path of probe_runtime.py; ``early`` is Python code that runs in the worker after the first filter.
"""

import ctypes
import platform

from lodger.sandbox.walls.libc import syscall as raw
from lodger.sandbox.walls.syscalls import NUMBER

READ, WRITE, EXECUTE = 1, 2, 4
# a function that returns 42: mov eax, 42; ret
FORTY_TWO = bytes.fromhex("b82a000000c3" if platform.machine() == "x86_64" else "40058052c0035fd6")
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_int)


def page(protection=READ | WRITE):
    """Map a page with this protection; return its address."""
    return _libc.mmap(None, 4096, protection, 0x22, -1, 0)


def protect(at, protection):
    try:
        return raw(NUMBER["mprotect"], at, 4096, protection)
    except OSError as problem:
        return -problem.errno


def plant():
    """Write a function into a writable page."""
    at = page()
    ctypes.memmove(at, FORTY_TWO, len(FORTY_TWO))
    return at


def call(at):
    return FUNCTION(at)()


class Runtime:
    name = "probe"

    def prepare(self, settings):
        self.settings = settings
        with open(settings["probe"], "rb") as source:
            self.scope = {}
            exec(compile(source.read(), "probe", "exec"), self.scope)

    def fresh(self):
        names = {name: globals()[name] for name in ("page", "protect", "plant", "call", "READ", "WRITE", "EXECUTE")}
        marks = dict(names)
        exec(self.settings.get("early", ""), {**names, "marks": marks})
        return self.scope["Realm"](marks)
