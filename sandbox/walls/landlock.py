"""Landlock: no path may be opened, no TCP port bound or connected, nothing outside signalled; and whatever else the kernel can deny.

A ruleset names the rights that it handles, and with no rule in it denies each of them. So the widest ruleset that the kernel takes is the
best one, also where the kernel is newer than this file: it is found by asking for one right more until the answer is EINVAL.
"""

import errno
import os
import struct

from lodger.sandbox.walls.libc import address, buffer, syscall
from lodger.sandbox.walls.syscalls import NUMBER

_CREATE = NUMBER["landlock_create_ruleset"]
_RESTRICT = NUMBER["landlock_restrict_self"]
_VERSION = 1
#: landlock_ruleset_attr: what of paths, of the network, and of other processes is handled. Rights of each that ABI 1, 4, 6 began with.
_FIELDS = ("paths", "network", "scopes")
_FIRST = {"paths": 13, "network": 0, "scopes": 0}
_WORD = 64


def abi() -> int:
    """Give the kernel's Landlock ABI, 0 without Landlock."""
    try:
        return syscall(_CREATE, 0, 0, _VERSION)
    except OSError:
        return 0


def ruleset(rights: "dict[str, int]") -> bytes:
    """Give the landlock_ruleset_attr that handles the first so many rights of each field, as short as an older kernel wants it."""
    words = [(1 << rights[field]) - 1 for field in _FIELDS]
    while len(words) > 1 and not words[-1]:
        words.pop()
    return struct.pack(f"={len(words)}Q", *words)


def widest() -> "dict[str, int]":
    """Give how many rights of each field the kernel knows. Raises OSError without Landlock."""
    rights = dict(_FIRST)
    os.close(_create(rights))
    for field in _FIELDS:
        while rights[field] < _WORD:
            rights[field] += 1
            try:
                os.close(_create(rights))
            except OSError as problem:
                if problem.errno not in (errno.EINVAL, errno.E2BIG):  # a right, or a field, that it does not know
                    raise
                rights[field] -= 1
                break
    return rights


def restrict() -> "dict[str, int]":
    """Deny it all to this process and its children; gives the rights that are denied. Needs no_new_privs. Raises OSError."""
    rights = widest()
    rules = _create(rights)
    try:
        syscall(_RESTRICT, rules, 0)
    finally:
        os.close(rules)
    return rights


def _create(rights: "dict[str, int]") -> int:
    attribute = buffer(ruleset(rights))
    return syscall(_CREATE, address(attribute), len(attribute))
