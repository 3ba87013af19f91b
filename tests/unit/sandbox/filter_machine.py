"""A machine that runs seccomp filters."""

import struct

MACHINES = ("x86_64", "aarch64")


def run(program: bytes, number: int, audit: int, arguments: tuple[int, ...] = (0,) * 6) -> int:
    return walked(program, number, audit, arguments)[0]


def walked(program: bytes, number: int, audit: int, arguments: tuple[int, ...] = (0,) * 6) -> tuple[int, int]:
    """Return the verdict and the number of executed instructions."""
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, audit, 0, *(word & 0xFFFFFFFFFFFFFFFF for word in arguments))
    at, register = 0, 0
    for count in range(1, 4096):
        code, yes, no, value = struct.unpack_from("=HBBI", program, at * 8)
        at += 1
        if code == 0x20:
            (register,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return int(value), count
        elif code == 0x05:
            at += value
        elif code == 0x54:
            register &= value
        else:
            met = {0x15: register == value, 0x35: register >= value, 0x45: bool(register & value)}[code]
            at += yes if met else no
    raise AssertionError("the program does not end")
