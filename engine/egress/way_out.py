"""The HTTP client's own thread and event loop, so that no handshake or body delays the engine's loop."""

import asyncio
import ipaddress
import ssl
import threading
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lodger.engine.core.access.grants import MIB
from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.execution import Answer
from lodger.engine.core.settings import Settings
from lodger.engine.core.token_buckets import TokenBuckets
from lodger.engine.egress.address import Address, AddressPolicy
from lodger.engine.egress.request import Request
from lodger.engine.egress.request_errors import Refused
from lodger.sandbox.loop_thread import LoopThread

if TYPE_CHECKING:
    from lodger.engine.egress.client import Rules

#: Seconds for a name, all servers and tries together.
LOOKUP_S = 5.0
#: Addresses of a name that are looked at; a name with more is refused rather than judged by a part.
MAX_ADDRESSES = 64


class Resolver:
    """Resolves names by DNS servers.

    Args:
        servers: like ``10.0.0.2`` or ``127.0.0.1:5353``; none: those of /etc/resolv.conf.

    Raises:
        InputError: dns_server_invalid.
        Unavailable: dns_unconfigured.
    """

    def __init__(self, servers: tuple[str, ...] = ()) -> None:
        import dns.asyncresolver
        import dns.exception
        import dns.nameserver
        import dns.resolver

        self._dns: Any = dns
        try:
            self._resolver = dns.asyncresolver.Resolver(configure=not servers)
        except dns.resolver.NoResolverConfiguration as error:
            raise Unavailable("dns_unconfigured", reason=str(error)) from error
        if servers:
            self._resolver.nameservers = [dns.nameserver.Do53Nameserver(*_server(text)) for text in servers]
        self._resolver.lifetime = LOOKUP_S

    async def addresses(self, host: str) -> list[Address]:
        """Return every address of a name, IPv4 first.

        Raises:
            Refused: it has none, or too many, or no server answers: all alike, so that scripts cannot probe internal names.
        """
        name = host + "."  # absolute: no search domain is ever put behind it
        answers = await asyncio.gather(self._ask(name, "A"), self._ask(name, "AAAA"))
        found = [ipaddress.ip_address(text) for answer in answers for text in answer]
        if not found or len(found) > MAX_ADDRESSES:
            raise Refused(f"{host} has {len(found)} addresses")
        return found

    async def _ask(self, name: str, kind: str) -> list[str]:
        """Query the DNS for records of a kind; return their texts, none after an error."""
        try:
            answer = await self._resolver.resolve(name, kind, raise_on_no_answer=False, search=False)
        except (self._dns.exception.DNSException, OSError, UnicodeError):
            return []
        return [] if answer.rrset is None else [str(record.address) for record in answer.rrset]


def _server(text: str) -> tuple[str, int]:
    """Return address and port of a DNS server from its text."""
    host, _, port = text.rpartition(":") if text.count(":") == 1 or "]" in text else (text, "", "53")
    try:
        address, number = str(ipaddress.ip_address(host.strip("[]"))), int(port)
    except ValueError:
        address, number = "", 0
    if not 0 < number < 65_536:
        raise InputError("dns_server_invalid", text=text)
    return address, number


def require() -> None:
    """Raise Unavailable (extra_missing) if the libraries of requests are not installed on this host."""
    try:
        import dns.asyncresolver  # noqa: F401 - whether it can be imported

        import lodger.engine.egress.client  # noqa: F401 - the same
    except ImportError as error:
        raise Unavailable("extra_missing.fetch", reason=str(error)) from error


class WayOut:
    """Sends requests by the rules of this node. ``start`` and ``stop`` are safe to call twice; :meth:`send` starts it if needed.

    Args:
        settings: ports, networks, DNS servers, certificates, pace.

    Raises:
        InputError: ports_invalid, network_invalid, dns_server_invalid, certificates_invalid.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ports = _ports(settings.egress_ports)
        self._addresses = AddressPolicy(settings.egress_networks.split())
        # Both are read at the first request. Refused only there, each run that sends one would end by a fault of the engine.
        for each in settings.egress_dns.split():
            _server(each)
        if settings.egress_ca is not None:
            _tls_context(settings.egress_ca)
        self._rules: Rules | None = None
        self._thread: LoopThread | None = None
        self._starting = threading.Lock()

    def start(self) -> None:
        """Start the thread that sends requests."""
        with self._starting:
            if self._thread is not None:
                return
            self._rules = self._make_rules()
            self._thread = LoopThread("lodger-way-out")

    def stop(self) -> None:
        """Cancel requests and end the thread."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()

    def _make_rules(self) -> "Rules":
        """Return the rules of this node's requests by the settings; raises Unavailable (extra_missing)."""
        require()
        from lodger.engine.egress.client import Rules

        per_s, host_per_s = self._settings.egress_per_s, self._settings.egress_host_per_s
        return Rules(
            addresses=self._addresses,
            look_up=Resolver(tuple(self._settings.egress_dns.split())).addresses,
            ports=self._ports,
            tls=_tls_context(self._settings.egress_ca),
            payer_pace=TokenBuckets(per_s, max(1, int(2 * per_s)), time.monotonic),
            host_pace=TokenBuckets(host_per_s, max(1, int(2 * host_per_s)), time.monotonic),
        )

    async def send(self, request: Request) -> Answer:
        """Send a request; cancelling the wait cancels it.

        Raises:
            NoAnswer: Refused, TooLate, TooLarge or Cut.
            Unavailable: extra_missing, dns_unconfigured.
        """
        self.start()
        from lodger.engine.egress.client import send

        settings = self._settings
        request = replace(request, max_body=min(request.max_body, settings.egress_max_mib * MIB))
        if settings.egress_max_s < request.total_s:
            late = f"no complete answer came within {settings.egress_max_s:g} s, the most that this engine allows"
            request = replace(request, total_s=settings.egress_max_s, late=late)

        if self._thread is None or self._rules is None:
            raise Unavailable("stopped")
        return await asyncio.wrap_future(self._thread.submit(send(self._rules, request)))


def _ports(text: str) -> frozenset[int]:
    """Return the ports that a setting lists; raises InputError (ports_invalid)."""
    try:
        found = frozenset(int(part) for part in text.split())
    except ValueError:
        found = frozenset({0})
    if not all(0 < port < 65_536 for port in found):
        raise InputError("ports_invalid", text=text)
    return found


@cache
def _tls_context(more: Path | None) -> ssl.SSLContext:
    """Return the TLS context that verifies certificates by the system's and by a file of more: to read them takes tens of milliseconds."""
    made = ssl.create_default_context()
    if more is not None:
        try:
            made.load_verify_locations(cafile=more)
        except OSError as error:  # ssl.SSLError is one
            raise InputError("certificates_invalid", file=more, reason=str(error)) from error
    return made
