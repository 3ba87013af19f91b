"""Classic BPF programs over seccomp_data (nr, arch, instruction pointer, six arguments), assembled from plain bytes.

A program decides by a tree over the call's number, not by a list walked from the top. The kernel tries a new filter on every number of its
table before it lets it stand, to know which calls it need not ask again: with a list of forty that cost each worker 60 µs, and each
call that is asked about costs its place in the list.
"""

import struct

from lodger.sandbox.walls.syscalls import AUDIT

_LOAD, _AND, _JUMP, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
_MAX_STEPS = 255  # of a conditional jump


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def answer(verdict: int) -> bytes:
    """Return a verdict."""
    return _op(_RETURN, verdict)


def when(index: int, values: "tuple[int, ...]", verdict: int) -> bytes:
    """Return a verdict when the low half of an argument is one of these values, else go on."""
    tests = (_op(_EQUAL, value, 0, 1) + answer(verdict) for value in values)
    return _op(_LOAD, _ARGUMENTS + 8 * index) + b"".join(tests)


def when_masked(index: int, mask: int, values: "tuple[int, ...]", verdict: int) -> bytes:
    """Return a verdict when these bits of an argument make one of these values, else go on."""
    tests = (_op(_EQUAL, value, 0, 1) + answer(verdict) for value in values)
    return _op(_LOAD, _ARGUMENTS + 8 * index) + _op(_AND, mask) + b"".join(tests)


def exactly(index: int, value: int, otherwise: int) -> bytes:
    """Go on when all 64 bits of an argument are this value, else return a verdict."""
    low, high = _ARGUMENTS + 8 * index, _ARGUMENTS + 8 * index + 4
    return b"".join(
        _op(_LOAD, offset) + _op(_EQUAL, word, 1, 0) + answer(otherwise)
        for offset, word in ((low, value & 0xFFFFFFFF), (high, value >> 32))
    )


def never(index: int, bits: int, otherwise: int) -> bytes:
    """Go on when an argument has none of these bits, else return a verdict."""
    return _op(_LOAD, _ARGUMENTS + 8 * index) + _op(_ANY_BIT, bits, 0, 1) + answer(otherwise)


def never_both(index: int, one: int, other: int, otherwise: int) -> bytes:
    """Go on unless an argument has both bits, else return a verdict."""
    return (
        _op(_LOAD, _ARGUMENTS + 8 * index) + _op(_ANY_BIT, one, 0, 2) + _op(_ANY_BIT, other, 0, 1) + answer(otherwise)
    )


def program(machine: str, rules: "dict[int, bytes]", default: int, foreign: int) -> bytes:
    """Assemble a filter.

    Args:
        machine: whose system calls; every other architecture, and x32, is answered with ``foreign``.
        rules: what to run for a number; each must return.
        default: for every other number.
        foreign: for calls of another table.
    """
    guard = _op(_LOAD, _ARCH) + _op(_EQUAL, AUDIT[machine], 1, 0) + answer(foreign) + _op(_LOAD, _NR)
    if machine == "x86_64":  # the x32 table shares the architecture mark and differs by one bit
        guard += _op(_AT_LEAST, _X32, 0, 1) + answer(foreign)
    return guard + _tree(sorted(rules.items()), answer(default))


def _tree(rules: "list[tuple[int, bytes]]", default: bytes) -> bytes:
    if not rules:
        return default
    if len(rules) == 1:
        number, body = rules[0]
        return _branch(_EQUAL, number, body, default)
    middle = len(rules) // 2
    return _branch(_AT_LEAST, rules[middle][0], _tree(rules[middle:], default), _tree(rules[:middle], default))


def _branch(test: int, value: int, yes: bytes, no: bytes) -> bytes:
    steps = len(yes) // 8
    if steps <= _MAX_STEPS:
        return _op(test, value, 0, steps) + yes + no
    return _op(test, value, 1, 0) + _op(_JUMP, steps) + yes + no
