"""Classic BPF programs over seccomp_data (nr, arch, instruction pointer, six arguments), assembled as bytes.

A program decides by a binary tree over the call's number, not by a list. When a filter is installed, the kernel runs it for every number of
its table to cache the calls that are always allowed: with a list of forty that cost each worker 60 µs, and each call that is not cached
costs its place in the list.
"""

import struct

from lodger.sandbox.walls.syscalls import AUDIT

_LOAD, _AND, _JUMP, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
_MAX_STEPS = 255  # of a conditional jump


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """Return one instruction of classic BPF, with the jumps for yes and no."""
    return struct.pack("=HBBI", code, yes, no, value)


def answer(verdict: int) -> bytes:
    """Return the instruction that returns a verdict."""
    return _op(_RETURN, verdict)


def when(index: int, values: "tuple[int, ...]", verdict: int) -> bytes:
    """Return the instructions that return a verdict if the low half of an argument is one of these values, and continue otherwise."""
    tests = (_op(_EQUAL, value, 0, 1) + answer(verdict) for value in values)
    return _op(_LOAD, _ARGUMENTS + 8 * index) + b"".join(tests)


def when_masked(index: int, mask: int, values: "tuple[int, ...]", verdict: int) -> bytes:
    """Return the instructions that return a verdict if the masked argument is one of these values, and continue otherwise."""
    tests = (_op(_EQUAL, value, 0, 1) + answer(verdict) for value in values)
    return _op(_LOAD, _ARGUMENTS + 8 * index) + _op(_AND, mask) + b"".join(tests)


def exactly(index: int, value: int, otherwise: int) -> bytes:
    """Return the instructions that continue if all 64 bits of an argument equal the value, and return a verdict otherwise."""
    low, high = _ARGUMENTS + 8 * index, _ARGUMENTS + 8 * index + 4
    return b"".join(
        _op(_LOAD, offset) + _op(_EQUAL, word, 1, 0) + answer(otherwise)
        for offset, word in ((low, value & 0xFFFFFFFF), (high, value >> 32))
    )


def never(index: int, bits: int, otherwise: int) -> bytes:
    """Return the instructions that continue if an argument has none of these bits, and return a verdict otherwise."""
    return _op(_LOAD, _ARGUMENTS + 8 * index) + _op(_ANY_BIT, bits, 0, 1) + answer(otherwise)


def never_both(index: int, one: int, other: int, otherwise: int) -> bytes:
    """Return the instructions that return a verdict if an argument has both bits, and continue otherwise."""
    return (
        _op(_LOAD, _ARGUMENTS + 8 * index) + _op(_ANY_BIT, one, 0, 2) + _op(_ANY_BIT, other, 0, 1) + answer(otherwise)
    )


def program(machine: str, rules: "dict[int, bytes]", default: int, foreign: int) -> bytes:
    """Return an assembled filter.

    Args:
        machine: architecture of the system calls; any other one, and x32, gets the verdict ``foreign``.
        rules: instructions for each call number; each must return a verdict.
        default: verdict for every other number.
        foreign: verdict for calls of another architecture.
    """
    guard = _op(_LOAD, _ARCH) + _op(_EQUAL, AUDIT[machine], 1, 0) + answer(foreign) + _op(_LOAD, _NR)
    if machine == "x86_64":  # x32 has the same architecture value and differs by one bit of the number
        guard += _op(_AT_LEAST, _X32, 0, 1) + answer(foreign)
    return guard + _tree(sorted(rules.items()), answer(default))


def _tree(rules: "list[tuple[int, bytes]]", default: bytes) -> bytes:
    """Return a binary search over the numbers of rules."""
    if not rules:
        return default
    if len(rules) == 1:
        number, body = rules[0]
        return _branch(_EQUAL, number, body, default)
    middle = len(rules) // 2
    return _branch(_AT_LEAST, rules[middle][0], _tree(rules[middle:], default), _tree(rules[:middle], default))


def _branch(test: int, value: int, yes: bytes, no: bytes) -> bytes:
    """Return a test of the call's number, with the instructions for yes and for no."""
    steps = len(yes) // 8
    if steps <= _MAX_STEPS:
        return _op(test, value, 0, steps) + yes + no
    return _op(test, value, 1, 0) + _op(_JUMP, steps) + yes + no
