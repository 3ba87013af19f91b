"""Addresses that requests of tenants may not reach. Pure, with a table of its own, because a library's "global" is no security check.

``ipaddress.is_global`` is true for NAT64 of the metadata service (64:ff9b::a9fe:a9fe), 6to4 of loopback (2002:7f00:1::),
``::127.0.0.1``, ``fec0::1``, multicast, 192.88.99.1 and 192.0.0.8 (seen on 3.11). Addresses that embed an IPv4 address are also
checked by that one.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from lodger.engine.core.errors import InputError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

#: IANA's special-purpose registry and what clouds keep for themselves, with the reason.
CLOSED_4: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "this host"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared by carriers; a metadata service (100.100.100.200)"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "a cloud provider's host service"),
    ("169.254.0.0/16", "link-local; metadata services (169.254.169.254, 169.254.170.2)"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignments; a metadata service (192.0.0.192)"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "6to4 relays"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarks"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved; broadcast"),
)
#: Of IPv6 only global unicast is open, and of that not these.
OPEN_6 = "2000::/3"
CLOSED_6: tuple[tuple[str, str], ...] = (
    ("2001::/23", "protocol assignments; Teredo, which carries IPv4 addresses"),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "6to4, which carries IPv4 addresses"),
    ("3fff::/20", "documentation"),
)
#: The well-known prefix of NAT64 (RFC 6052): as open as the IPv4 address in its last 32 bits.
NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)

_closed_4 = tuple((IPv4Network(text), why) for text, why in CLOSED_4)
_closed_6 = tuple((IPv6Network(text), why) for text, why in CLOSED_6)
_open_6 = IPv6Network(OPEN_6)


def plain(address: Address) -> Address:
    """Return the address that the kernel would connect to: the IPv4 address of an IPv4-mapped one, any other unchanged."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def closed(address: Address) -> str | None:
    """Return the reason why an address is not allowed, None if it is."""
    address = plain(address)
    if isinstance(address, IPv4Address):
        return next((why for network, why in _closed_4 if address in network), None)
    if address.scope_id is not None:
        return "has the zone of a network interface"
    if address in NAT64:
        return closed(IPv4Address(int(address) & 0xFFFFFFFF))
    if address not in _open_6:
        return "not global unicast"
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        inner = closed(IPv4Address(int(address) & 0xFFFFFFFF))
        if inner is not None:
            return inner
    return next((why for network, why in _closed_6 if address in network), None)


class AddressPolicy:
    """The addresses that requests may reach: all outside the table, and networks that the operator has allowed.

    Args:
        opened: networks like ``10.1.2.0/24`` that requests may reach in spite of the table.

    Raises:
        InputError: network_invalid.
    """

    def __init__(self, opened: Iterable[str] = ()) -> None:
        self._opened = tuple(_network(text) for text in opened)

    def closed(self, address: Address) -> str | None:
        """Return the reason why an address is not allowed, None if it is."""
        return None if self.opened(address) else closed(address)

    def opened(self, address: Address) -> bool:
        """Whether the operator has allowed an address."""
        address = plain(address)
        return any(address.version == network.version and address in network for network in self._opened)


def _network(text: str) -> Network:
    """Return a network from its text, such as ``10.0.0.0/8``."""
    try:
        return ip_network(text)
    except ValueError as error:
        raise InputError("network_invalid", text=text, reason=str(error)) from None
