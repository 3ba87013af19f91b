"""Network backend of the HTTP client: resolves a name once, checks all its addresses, and connects to one of them.

The client sees names (for Host and SNI); only this module sees addresses, and no name is resolved twice.
"""

import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

from httpcore2 import AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream, ConnectError, ConnectTimeout

from lodger.engine.egress.address import Address, AddressPolicy, plain
from lodger.engine.egress.request_errors import Refused, TooLarge
from lodger.engine.egress.target import Target

#: Time limit for one address, seconds; then the next one is tried.
CONNECT_S = 3.0


#: Returns all addresses of a name; raises Refused.
Lookup = Callable[[str], Awaitable[list[Address]]]
#: Bytes that may come before an answer's body: its head, what informs of it (100 Continue, 103 Early Hints), and one piece more.
MAX_BEFORE = 256 * 1024


class Measured:
    """A connection with a limit of received bytes, framing included: empty chunks cost the receiver as much as the sender.

    Args:
        beneath: the wrapped connection.
        maximum: bytes that may still be received; raised by :meth:`GuardedNetwork.expect`.
    """

    def __init__(self, beneath: AsyncNetworkStream, maximum: int) -> None:
        self._beneath = beneath
        self.maximum = maximum

    def __getattr__(self, name: str) -> Any:
        return getattr(self._beneath, name)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - the client's interface
        """Read from the connection and count the bytes.

        Raises:
            TooLarge: more than a response may have was received.
        """
        data = await self._beneath.read(max_bytes, timeout)
        self.maximum -= len(data)
        if self.maximum < 0:
            raise TooLarge("the answer exceeds the maximum size")
        return data

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the client's interface
    ) -> "Measured":
        """Start TLS; the limit then applies to the decrypted bytes."""
        self._beneath = await self._beneath.start_tls(ssl_context, server_hostname, timeout)
        return self


class GuardedNetwork(AsyncNetworkBackend):
    """Connects to the checked addresses of one target and to nothing else.

    Args:
        target: of the one request that this serves.
        addresses: which addresses are allowed; None for a destination that the operator has declared, whose name this machine resolves.

    Attributes:
        connected: whether a connection was made.
    """

    def __init__(self, target: Target, addresses: AddressPolicy | None, look_up: Lookup) -> None:
        self._target = target
        self._addresses = addresses
        self._look_up = look_up
        self._beneath = AnyIOBackend()
        self._streams: list[Measured] = []
        self.connected = False

    def expect(self, body_bytes: int) -> None:
        """Limit the bytes of the next response to a body of this size, and as much again for its framing."""
        for stream in self._streams:
            stream.maximum = 2 * body_bytes + MAX_BEFORE

    async def aclose(self) -> None:
        """Close every opened connection: the client loses one if its TLS handshake is cancelled."""
        while self._streams:
            await self._streams.pop().aclose()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the client's interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        """Connect to an address of a host that is allowed.

        Raises:
            Refused: one of the addresses is not allowed.
            ConnectError: none accepts a connection.
        """
        origin, policy = self._target.origin, self._addresses
        hosts = [origin.host] if policy is None else [str(each) for each in await self._judged(policy)]
        for number, address in enumerate(hosts, 1):
            try:
                stream = await self._beneath.connect_tcp(
                    address, origin.port, timeout=CONNECT_S, socket_options=socket_options
                )
            except (ConnectError, ConnectTimeout):
                if number == len(hosts):
                    raise
                continue
            self.connected = True
            measured = Measured(stream, MAX_BEFORE)
            self._streams.append(measured)
            reached = measured.get_extra_info("server_addr")
            if policy is not None and (reached is None or reached[0].partition("%")[0] != address):
                raise Refused(f"the connection reached {reached} instead of {address}")
            return cast("AsyncNetworkStream", measured)
        raise Refused("the host has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the client's interface
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        """Refuse: no request goes to a socket of this machine."""
        raise Refused("a Unix socket")

    async def _judged(self, policy: AddressPolicy) -> list[Address]:
        """Return the target's addresses if all of them are allowed; raises Refused if one is not."""
        target = self._target
        found = [target.address] if target.address is not None else await self._look_up(target.origin.host)
        made = [plain(address) for address in found]
        for address in made:
            why = policy.closed(address)
            if why is None and not policy.opened(address) and is_ours(address):
                why = "an address of this machine"
            if why is not None:
                raise Refused(f"{target.origin.host} is {address}: {why}")
        return made


def is_ours(address: Address) -> bool:
    """Whether an address belongs to this machine: then the kernel also sends from it. Sends nothing."""
    kind = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return bool(probe.getsockname()[0].partition("%")[0] == str(address))
    except OSError:
        return False  # no way there at all: the connection will say so
