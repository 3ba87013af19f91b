"""Landlock: no path may be opened, no TCP port bound or connected, nothing outside signalled; as far as the kernel's ABI goes."""

import os
import struct

from lodger.sandbox.walls.libc import address, buffer, syscall
from lodger.sandbox.walls.syscalls import NUMBER

_CREATE = NUMBER["landlock_create_ruleset"]
_RESTRICT = NUMBER["landlock_restrict_self"]
_VERSION = 1


def abi() -> int:
    """Give the kernel's Landlock ABI, 0 without Landlock."""
    try:
        return syscall(_CREATE, 0, 0, _VERSION)
    except OSError:
        return 0


def ruleset(version: int) -> bytes:
    """Give the landlock_ruleset_attr that handles, and so denies, everything the ABI knows."""
    bits = 13  # ABI 1: execute … make_sym
    for since in (2, 3, 5):  # refer, truncate, ioctl_dev
        bits += version >= since
    words = [(1 << bits) - 1]
    if version >= 4:
        words.append(0b11)  # bind_tcp, connect_tcp
    if version >= 6:
        words.append(0b11)  # abstract unix sockets, signals
    return struct.pack(f"={len(words)}Q", *words)


def restrict() -> int:
    """Deny it all to this process and its children; gives the ABI used. Needs no_new_privs. Raises OSError."""
    version = abi()
    attribute = buffer(ruleset(version))
    rules = syscall(_CREATE, address(attribute), len(attribute))
    try:
        syscall(_RESTRICT, rules, 0)
    finally:
        os.close(rules)
    return version
