"""Looks at large JSON bodies before they are parsed: here, or in a process of its own.

A megabyte of brackets or of small objects keeps the interpreter for a tenth of a second, whichever thread looks at it: every turn of the
event loop then waits until that thread lets go, and an answer takes ten such turns. In another process it costs its sender's answer only.
That process has no rights over anything: no token, no ledger, no environment; it ends when its standard input does.
"""

import json
import os
import select
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO

from lodger.sandbox.prescan import JsonRefused, parse

#: Deepest nesting of a JSON body.
DEPTH = 64
#: Most values of a JSON body, keys included: more than an input of 256 KiB can hold.
VALUES = 150_000
#: How much the process stands back behind those that answer.
_NICE = 5
#: Seconds that it may take to end, and that it may take and give nothing while a body is with it.
_END_S = 5.0
PATIENCE_S = 10.0
_HEAD = struct.Struct("<QQ")


def looked(body: bytes, most: int) -> bool:
    """Tell whether a body is a JSON object.

    Raises:
        JsonRefused: as :func:`lodger.sandbox.prescan.parse`.
    """
    return isinstance(parse(body, max_bytes=most, max_depth=DEPTH, max_values=VALUES), dict)


class Sieve:
    """The process, made when the first body comes and again when it was lost. Safe to use from several threads, and to close twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def looked(self, body: bytes, most: int) -> bool:
        """Do what :func:`looked` does, elsewhere; of a process that is lost or stands still nobody is told: it is done here then."""
        with self._lock:
            try:
                told = self._asked(body, most)
            except (OSError, ValueError):
                self._end(at_once=True)
                told = None
        if told is None:
            return looked(body, most)
        if "code" in told:
            raise JsonRefused(told["code"], told["message"])
        return bool(told["object"])

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _asked(self, body: bytes, most: int) -> dict[str, str]:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 - this very module, by this interpreter
                [sys.executable, "-P", "-m", __spec__.name],  # -P: what lies in the present folder is no module of ours
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # who presses Ctrl-C means the server, which ends it
            )
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        into.write(_HEAD.pack(len(body), most))  # less than a pipe takes at once
        left = memoryview(body)
        while left:
            _moves(into, select.POLLOUT)
            left = left[into.write(left) or 0 :]
        answer = b""
        while not answer.endswith(b"\n"):
            _moves(out, select.POLLIN)
            piece = out.read(4096)
            if not piece:
                raise OSError("the process is lost")
            answer += piece
        found: dict[str, str] = json.loads(answer)
        return found

    def _end(self, *, at_once: bool = False) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if at_once:
            process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _moves(pipe: IO[bytes], how: int) -> None:
    """Wait until something can be written or read: one that stands still would keep everybody's bodies waiting behind it."""
    waiting = select.poll()
    waiting.register(pipe, how)
    if not waiting.poll(PATIENCE_S * 1000):
        raise TimeoutError("the process stands still")


def _told(body: bytes, most: int) -> dict[str, object]:
    try:
        return {"object": looked(body, most)}
    except JsonRefused as refused:
        return {"code": refused.code, "message": str(refused)}


def main() -> None:
    """Answer one body after another until there is no other."""
    with suppress(OSError):
        os.nice(_NICE)
    into, out = sys.stdin.buffer, sys.stdout.buffer
    while head := into.read(_HEAD.size):
        size, most = _HEAD.unpack(head)
        out.write(json.dumps(_told(into.read(size), most)).encode() + b"\n")
        out.flush()


if __name__ == "__main__":
    main()
