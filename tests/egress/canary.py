"""Listens on every address of this network and writes down each connection: which address was reached, on which port."""

import asyncio
import socket
from contextlib import suppress
from ipaddress import ip_address
from typing import Self

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\ncanary"
_TLS_HANDSHAKE = 0x16


class Canary:
    """``async with`` starts and stops it.

    Args:
        ports: that are listened to; 0 for one that is free.
    """

    def __init__(self, ports: tuple[int, ...] = (0,)) -> None:
        self.heard: list[tuple[str, int]] = []
        self.requests: list[bytes] = []
        self.answers: dict[str, bytes] = {}
        self.ports = ports
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> Self:
        made = []
        for port in self.ports:
            listening = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(("::", port))
            made.append(listening.getsockname()[1])
            self._servers.append(await asyncio.start_server(self._hear, sock=listening))
        self.ports = tuple(made)
        return self

    async def __aexit__(self, *_error: object) -> None:
        for server in self._servers:
            server.close()
            await server.wait_closed()

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Note the address and the first bytes of a connection."""
        address, port = writer.get_extra_info("sockname")[:2]
        found = ip_address(address.partition("%")[0])
        plain = str(getattr(found, "ipv4_mapped", None) or found)
        self.heard.append((plain, port))
        with suppress(ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(30):
                begun = await reader.read(4096)
            if begun and begun[0] != _TLS_HANDSHAKE:
                self.requests.append(begun)
                writer.write(self.answers.get(plain, ANSWER))
                await writer.drain()
        writer.close()
