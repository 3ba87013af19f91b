"""Origins and origin patterns (scheme, host, port) as people write them, and whether a pattern covers an origin. Pure."""

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address

import idna

from lodger.engine.core.errors import InputError

PORTS = {"https": 443, "http": 80}
_WRITTEN = re.compile(r"(?:(https?)://)?(\*|\[[0-9a-f:.]+\]|(?:\*\.)?[a-z0-9._-]+)(?::(\d{1,5}))?/?", re.ASCII)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Origin:
    """A scheme, a host and a port. In a pattern the host may be ``*`` or ``*.example.com``.

    ``host`` is lower case ASCII without a final dot; an address is written as :mod:`ipaddress` writes it, without brackets.
    """

    scheme: str
    host: str
    port: int

    def covers(self, other: "Origin") -> bool:
        """Whether this pattern covers the other origin."""
        if (self.scheme, self.port) != (other.scheme, other.port):
            return False
        if self.host.startswith("*."):
            return other.host.endswith(self.host[1:])
        return self.host in ("*", other.host)

    def __str__(self) -> str:
        """Return the canonical spelling, without a default scheme or port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return (host if self.scheme == "https" else f"{self.scheme}://{host}") + port


@lru_cache(4096)
def parse_origin(text: str) -> Origin:
    """Read a pattern: ``api.example.com``, ``*.example.com:8443``, ``http://10.0.0.7:8080``, ``*``. The default scheme is https.

    Raises:
        InputError: host_invalid.
    """
    found = _WRITTEN.fullmatch(text.lower())
    host = _host(found[2]) if found else None
    port = int(found[3]) if found and found[3] else PORTS[(found and found[1]) or "https"]
    if found is None or host is None or not 0 < port < 65_536:
        raise InputError("host_invalid", text=text)
    return Origin(found[1] or "https", host, port)


def _host(text: str) -> str | None:
    """Return the canonical host of a text; None if it is none."""
    if text == "*":
        return text
    if text.startswith("["):
        try:
            return str(IPv6Address(text[1:-1]))
        except ValueError:
            return None
    star, plain = ("*.", text[2:]) if text.startswith("*.") else ("", text)
    if is_name(plain):
        return star + plain
    try:
        return None if star else str(IPv4Address(plain))
    except ValueError:
        return None


def with_ascii_domain(address: str) -> str:
    """Return a mail address with its domain as the DNS has it: ``a@müller.example`` becomes ``a@xn--mller-kva.example``.

    Raises:
        ValueError: it is no domain name.
    """
    local, at, domain = address.rpartition("@")
    if domain.isascii():
        return address
    return local + at + idna.encode(domain, uts46=True, transitional=False).decode()


def is_name(host: str) -> bool:
    """Whether a host is a domain name and could be nothing else: the last label of a name is never a number (URL standard)."""
    labels = host.split(".")
    return (
        len(host) <= 253
        and all(_LABEL.fullmatch(label) for label in labels)
        and not re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1])
    )
