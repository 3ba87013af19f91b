"""Accepting and reading as Python's own sockets do, errors too."""

import errno
import os
import socket
from collections.abc import Iterator

import pytest

from lodger.engine.server.kernel import Kernel


@pytest.fixture(params=[("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)], ids=["IPv4", "IPv6"])
def listening(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    host, family = request.param
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as made:
        try:
            made.bind((host, 0))
        except OSError:
            pytest.skip("this host has no such address")
        made.listen()
        made.setblocking(False)
        yield made


def test_it_takes_who_waits_and_reads_what_was_said(listening: socket.socket) -> None:
    kernel = Kernel()
    with pytest.raises(BlockingIOError):
        kernel.accept(listening)
    with socket.create_connection(listening.getsockname()[:2]) as client:
        own, host = kernel.accept(listening)
        with own:
            assert (host, own.getpeername()) == (listening.getsockname()[0], client.getsockname())
            assert not os.get_inheritable(own.fileno())
            assert not os.get_blocking(own.fileno())
            assert kernel.read(own) is None
            client.sendall(b"one\0two")
            assert kernel.read(own, peek=True) == b"o"
            assert kernel.read(own) == b"one\0two"
            client.sendall(b"x" * 40_000)
            client.shutdown(socket.SHUT_WR)
            said = [kernel.read(own) for _ in range(2)]
            assert (b"".join(part or b"" for part in said), len(said[0] or b"")) == (b"x" * 40_000, 32 * 1024)
            assert kernel.read(own) == b""
            own.shutdown(socket.SHUT_RDWR)


def test_what_fails_says_what(listening: socket.socket) -> None:
    kernel = Kernel()
    with socket.socket() as alone:
        with pytest.raises(OSError, match="not connected") as told:
            kernel.read(alone)
        assert told.value.errno == errno.ENOTCONN
        with pytest.raises(OSError, match="Invalid argument"):
            kernel.accept(alone)
    assert listening.fileno() >= 0
