"""A network namespace in which every address of both families is this machine's, so that every connection is seen.

``ip route add local 0.0.0.0/0 dev lo`` (AnyIP), spoken to the kernel directly, because not every machine has the tool.
"""

import ctypes
import fcntl
import os
import socket
import struct

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_RTM_NEWROUTE, _REQUEST = 24, 0x1 | 0x4 | 0x400 | 0x100  # request, ack, create, replace
_LOCAL_TABLE, _PROTO_STATIC, _SCOPE_HOST, _TYPE_LOCAL = 255, 4, 254, 2
_DST, _OIF = 1, 4


class NoNamespace(Exception):
    """This host gives no network of one's own."""


def enter() -> None:
    """Leave the machine's network for an own one, loopback up, every address local. The process must have one thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) and libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        raise NoNamespace(os.strerror(ctypes.get_errno()))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        wanted = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(control, _SIOCGIFFLAGS, wanted))[1]
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | _IFF_UP))
    _all_local(socket.AF_INET)
    _all_local(socket.AF_INET6)


def _all_local(family: int) -> None:
    """Route every address of a family to this host."""
    attribute = struct.pack("HHI", 8, _OIF, socket.if_nametoindex("lo"))
    route = struct.pack("BBBBBBBBI", family, 0, 0, 0, _LOCAL_TABLE, _PROTO_STATIC, _SCOPE_HOST, _TYPE_LOCAL, 0)
    body = route + attribute
    message = struct.pack("IHHII", 16 + len(body), _RTM_NEWROUTE, _REQUEST, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.bind((0, 0))
        netlink.send(message)
        answer = netlink.recv(4096)
    error = struct.unpack_from("i", answer, 16)[0]
    if error:
        raise NoNamespace(os.strerror(-error))
