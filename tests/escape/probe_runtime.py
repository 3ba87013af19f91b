"""A runtime for tests of the walls: main.js holds Python code that runs in the worker, as native code would after a breach.

The zygote loads it by path. It imports in advance what snippets may use, because files cannot be opened later.
"""

import ctypes
import gc
import os
import resource
import signal
import struct
import time

from lodger.sandbox.frames import BUNDLE_PART, CALL, CALL_ID, DONE, FAIL, LOG, REPLY

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_USES = (gc, os, resource, signal, struct, time)


def syscall(number, *arguments):
    """Return the result, or the negative errno."""
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    ctypes.set_errno(0)
    answer = _libc.syscall(ctypes.c_long(number), *words)
    return -ctypes.get_errno() if answer == -1 else answer


def _thirty_two():
    """Return machine code that makes a 32-bit system call (int 0x80) with a given number and zero arguments, before code is sealed."""
    if os.uname().machine != "x86_64":
        return None
    # push rbx; mov eax, edi; xor ebx, ecx, edx, esi, edi; int 0x80; pop rbx; cdqe; ret
    code = bytes.fromhex("53 89f8 31db 31c9 31d2 31f6 31ff cd80 5b 4898 c3")
    _libc.mmap.restype = ctypes.c_void_p
    at = _libc.mmap(None, 4096, 7, 0x22, -1, 0)
    ctypes.memmove(at, code, len(code))
    return ctypes.PYFUNCTYPE(ctypes.c_long, ctypes.c_int)(at)


def bundle_parts(bundle):
    """Return the files of a bundle by name."""
    found, at = {}, 0
    while at < len(bundle):
        name, source = BUNDLE_PART.unpack_from(bundle, at)
        at += BUNDLE_PART.size
        found[bundle[at : at + name].decode()] = bundle[at + name : at + name + source].decode()
        at += name + source
    return found


class Realm:
    def __init__(self, marks):
        self.marks = marks
        self.limits = {}

    def bound(self, limits):
        self.limits = limits

    def run(self, bundle, channel):
        modules = bundle_parts(bundle)
        scope = {
            "channel": channel,
            "syscall": syscall,
            "int80": self.marks.get("int80"),
            "ctypes": ctypes,
            "os": os,
            "resource": resource,
            "signal": signal,
            "struct": struct,
            "time": time,
            "limits": self.limits,
            "context": modules[""],
            "marks": self.marks,
            "done": lambda text: channel.send(DONE, text.encode()),
            "log": lambda text, level=1: channel.send(LOG, bytes((level,)) + text.encode()),
            "fail": lambda outcome, text="{}": channel.send(
                FAIL, bytes((len(outcome),)) + outcome.encode() + text.encode()
            ),
            "ask": lambda number, name, text: channel.send(
                CALL, CALL_ID.pack(number) + bytes((len(name),)) + name.encode() + text.encode()
            ),
            "hear": lambda: _reply(channel),
        }
        exec(compile(modules["main.js"], "main.js", "exec"), scope)


def _reply(channel):
    """Return number, success and text of the next reply to a call."""
    kind, payload = channel.receive()
    if kind != REPLY:
        raise RuntimeError("not a reply")
    return CALL_ID.unpack_from(payload)[0], payload[4] == 1, payload[5:].decode()


class Runtime:
    name = "probe"

    def prepare(self, settings):
        self.settings = dict(settings)
        self.int80 = _thirty_two()
        if settings.get("fail_prepare"):
            raise RuntimeError(settings["fail_prepare"])

    def fresh(self):
        if self.settings.get("fail_fresh"):
            raise RuntimeError(self.settings["fail_fresh"])
        return Realm({"seed": os.urandom(8).hex(), "int80": self.int80})
