"""The worker process of one attempt: raises its walls, warms up, waits for a job, runs it and exits."""

import os
from _socket import AF_UNIX, SOCK_STREAM, socketpair

from lodger.sandbox.child.channel import Disconnected, SocketChannel
from lodger.sandbox.child.settings import REHEARSALS
from lodger.sandbox.frames import (
    ARMED,
    BUNDLE,
    COMPILE,
    DONE,
    FAIL,
    HEAD,
    HEADER,
    HEADER_FIELDS,
    IMAGE,
    LIMITS_WIRE,
    READY,
    TRACE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from lodger.sandbox.child.boot import Boot
    from lodger.sandbox.runtime import Channel, Realm, Runtime

#: Answer to MemoryError, built in advance.
_OUT_OF_MEMORY = b"\x0cmemory_limit" + b'{"name":"InternalError","message":"out of memory"}'
_NEVER_READY = b"\x04boot"


_NO_NUMBERS = bytes(LIMITS_WIRE.size)


def _numbers(payload: bytes) -> "dict[str, int]":
    """Return the limits of a header by name."""
    return dict(zip(HEADER_FIELDS, LIMITS_WIRE.unpack(payload), strict=True))


def run_worker(descriptor: int, boot: "Boot", runtime: "Runtime") -> "NoReturn":
    """Run the worker in the forked process; never returns.

    Args:
        descriptor: file descriptor of the worker's socket.
        boot: raises the walls.
        runtime: prepared by the zygote.
    """
    channel = SocketChannel(descriptor)
    try:
        try:
            boot.in_worker(descriptor)
            realm = runtime.fresh()
            _numbers(_NO_NUMBERS)
            channel.rehearse()
        except Exception as problem:  # noqa: BLE001 - no tenant byte yet: the reason may be reported
            channel.send(FAIL, _NEVER_READY + f"{type(problem).__name__}: {problem}".encode("utf-8", "replace"))
            os._exit(70)
        channel.send(READY, b"")
        _attempt(channel, boot, realm)
    except MemoryError:
        channel.send(FAIL, _OUT_OF_MEMORY)
    except Disconnected:
        pass
    except BaseException:  # noqa: BLE001 - any other error is a crash, and its text is not sent
        os._exit(72)
    os._exit(0)


def _attempt(channel: SocketChannel, boot: "Boot", realm: "Realm") -> None:
    """Receive one job, run it and send its end."""
    kind, numbers = channel.receive()
    if kind != HEADER or len(numbers) != LIMITS_WIRE.size:
        os._exit(71)
    limits = _numbers(numbers)
    code_bytes = 0
    if limits["image"]:
        descriptor, kind, layout = channel.receive_descriptor()
        if kind != IMAGE:
            os._exit(71)
        code_bytes = realm.map_image(descriptor, layout, limits)  # type: ignore[attr-defined]  # only runtimes with this method are given an image
    realm.bound(limits)
    boot.in_armed_worker(limits, code_bytes)
    channel.send(ARMED, b"")
    kind, bundle = channel.receive()
    if kind == COMPILE:
        realm.compile(bundle, channel)  # type: ignore[attr-defined]  # the same
    if kind != BUNDLE:
        os._exit(71)
    if limits["replays"]:
        kind, trace = channel.receive()
        if kind != TRACE:
            os._exit(71)
        realm.replay(trace)
    realm.run(bundle, channel)


class _EmptyRealm:
    """Realm for rehearsals: sends an empty result."""

    def replay(self, _trace: bytes) -> None:
        """Ignore the trace."""

    def bound(self, _limits: "dict[str, int]") -> None:
        """Ignore the limits."""

    def run(self, _bundle: bytes, channel: "Channel") -> None:
        """Send an empty result."""
        channel.send(DONE, b"null")


def rehearse(boot: "Boot") -> None:
    """Run a worker's code in the zygote, so that the interpreter's caches are built once and shared by all forks.

    Args:
        boot: result of :meth:`lodger.sandbox.child.boot.Boot.rehearsal`.
    """
    ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
    said = HEAD.pack(LIMITS_WIRE.size, HEADER) + _NO_NUMBERS + HEAD.pack(2, BUNDLE) + b"{}"
    for _ in range(REHEARSALS):
        ours.send(said)
        channel = SocketChannel(theirs.fileno())
        boot.in_worker(theirs.fileno())
        _numbers(_NO_NUMBERS)
        channel.rehearse()
        channel.send(READY, b"")
        _attempt(channel, boot, _EmptyRealm())
        ours.recv(4096)
    ours.close()
    theirs.close()
