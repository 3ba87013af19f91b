"""Landlock: denies all access to paths, TCP ports and signals to other processes, and every other right that the kernel handles.

A ruleset without rules denies all rights that it handles. So the widest ruleset is the best one, also on kernels newer than this module; it
is found by adding one right at a time until the kernel returns EINVAL.
"""

import errno
import os
import struct

from lodger.sandbox.walls.libc import address, buffer, syscall
from lodger.sandbox.walls.syscalls import NUMBER

_CREATE = NUMBER["landlock_create_ruleset"]
_RESTRICT = NUMBER["landlock_restrict_self"]
_ADD_RULE = NUMBER["landlock_add_rule"]
_VERSION = 1
_PATH_BENEATH = 1
#: The rights to execute and read files and to list folders.
READING = 1 << 0 | 1 << 2 | 1 << 3
#: Fields of landlock_ruleset_attr: rights on paths, on the network, and on other processes, and the number of rights to start from.
_FIELDS = ("paths", "network", "scopes")
_FIRST = {"paths": 13, "network": 0, "scopes": 0}
_WORD = 64


def abi() -> int:
    """Return the kernel's Landlock ABI version, 0 without Landlock."""
    try:
        return syscall(_CREATE, 0, 0, _VERSION)
    except OSError:
        return 0


def ruleset(rights: "dict[str, int]") -> bytes:
    """Return the landlock_ruleset_attr that handles the given number of rights of each field, without trailing zero fields."""
    words = [(1 << rights[field]) - 1 for field in _FIELDS]
    while len(words) > 1 and not words[-1]:
        words.pop()
    return struct.pack(f"={len(words)}Q", *words)


def supported_rights() -> "dict[str, int]":
    """Return the number of rights of each field that the kernel knows. Raises OSError without Landlock."""
    rights = dict(_FIRST)
    os.close(_create(rights))
    for field in _FIELDS:
        while rights[field] < _WORD:
            rights[field] += 1
            try:
                os.close(_create(rights))
            except OSError as problem:
                if problem.errno not in (errno.EINVAL, errno.E2BIG):  # an unknown right or field
                    raise
                rights[field] -= 1
                break
    return rights


def restrict(allowed: int = 0) -> "dict[str, int]":
    """Deny all rights to this process and its children and return their numbers. Needs no_new_privs. Raises OSError.

    Args:
        allowed: rights on paths that stay, for every path.
    """
    rights = supported_rights()
    rules = _create(rights)
    try:
        if allowed:
            top = os.open("/", os.O_PATH | os.O_CLOEXEC)
            rule = buffer(struct.pack("=Qi", allowed, top))
            syscall(_ADD_RULE, rules, _PATH_BENEATH, address(rule), 0)
            os.close(top)
        syscall(_RESTRICT, rules, 0)
    finally:
        os.close(rules)
    return rights


def _create(rights: "dict[str, int]") -> int:
    """Create a ruleset; return its descriptor."""
    attribute = buffer(ruleset(rights))
    return syscall(_CREATE, address(attribute), len(attribute))
