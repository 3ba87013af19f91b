"""Name resolution by DNS servers alone, asynchronous and with a time limit.

The system's resolver is not used: it cannot be cancelled, so one tenant's slow name server would hold the threads that all tenants
share (seen), it adds search domains, and it knows names of the machine's own (/etc/hosts).
"""

import asyncio
import ipaddress
from typing import Any

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.egress.address import Address
from lodger.engine.egress.request_errors import Refused

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
        Unavailable: extra_missing, dns_unconfigured.
    """

    def __init__(self, servers: tuple[str, ...] = ()) -> None:
        try:
            import dns.asyncresolver
            import dns.exception
            import dns.nameserver
            import dns.resolver
        except ImportError as error:
            raise extra_missing(error) from error
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
        return str(ipaddress.ip_address(host.strip("[]"))), int(port)
    except ValueError:
        raise InputError("dns_server_invalid", text=text) from None


def extra_missing(error: ImportError) -> Unavailable:
    """Return the error for a host on which the client's libraries are not installed."""
    return Unavailable("extra_missing.fetch", reason=str(error))  # fmt: skip
