"""Strict URL parsing: only the canonical spelling is accepted, so that no two parsers can read a URL differently.

Scripts' own URL class (URL standard) produces this spelling. Lenient parsing with normalization was dropped for that reason.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

from lodger.engine.core.access.origins import PORTS, Origin, is_name
from lodger.engine.egress.request_errors import Refused

MAX = 8192
_URL = re.compile(r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?(/[!\"$-~]*)?", re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,30}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a request.

    Attributes:
        address: the host if it is an IP address, else None.
        path: path and query.
    """

    origin: Origin
    path: str
    address: IPv4Address | IPv6Address | None = None

    @property
    def authority(self) -> str:
        """Host and port, as in the Host header."""
        host = f"[{self.origin.host}]" if isinstance(self.address, IPv6Address) else self.origin.host
        return host if self.origin.port == PORTS[self.origin.scheme] else f"{host}:{self.origin.port}"

    def __str__(self) -> str:
        return f"{self.origin.scheme}://{self.authority}{self.path}"


def read(url: str) -> Target:
    """Return the target of a URL.

    Raises:
        Refused: another scheme, a user's name, or anything that is not the canonical spelling.
    """
    found = _URL.fullmatch(url) if len(url) <= MAX else None
    if found is None:
        scheme = url.partition(":")[0]
        other = _SCHEME.fullmatch(scheme) and scheme not in PORTS
        said = f"this request is not allowed: fetch has the schemes http and https, not {scheme}" if other else None
        raise Refused("the URL is not a canonical http or https URL", said)
    scheme, host, digits, path = found.groups()
    port = int(digits) if digits else PORTS[scheme]
    if port > 65_535:
        raise Refused("the port is out of range")
    address = _address(host)
    if address is None and not is_name(host):
        raise Refused("the host is not a name or an address")
    return Target(Origin(scheme, host if address is None else str(address), port), path or "/", address)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address that a host is; None for a name."""
    try:
        return IPv6Address(host[1:-1]) if host.startswith("[") else IPv4Address(host)
    except ValueError:
        if host.startswith("["):
            raise Refused("the host is not a valid address") from None
        return None


def host_of(url: str) -> str | None:
    """Return the host of a URL for the log: its path or user name may be confidential."""
    try:
        return urlsplit(url[:300]).hostname
    except ValueError:
        return None
