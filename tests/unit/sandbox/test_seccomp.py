"""The filters as programs: run here by a small interpreter of classic BPF, for both architectures, over every number."""

import struct

import pytest

from lodger.sandbox.walls import seccomp
from lodger.sandbox.walls.syscalls import AUDIT, table

MACHINES = ("x86_64", "aarch64")


def run(program: bytes, number: int, audit: int, arguments: tuple[int, ...] = (0,) * 6) -> int:
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, audit, 0, *arguments)
    at, register = 0, 0
    for _ in range(4096):
        code, yes, no, value = struct.unpack_from("=HBBI", program, at * 8)
        at += 1
        if code == 0x20:
            (register,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return int(value)
        else:
            met = {0x15: register == value, 0x35: register >= value, 0x45: bool(register & value)}[code]
            at += yes if met else no
    raise AssertionError("the program does not end")


@pytest.mark.parametrize("machine", MACHINES)
def test_first_filter_over_every_number(machine: str) -> None:
    numbers = table(machine)
    names = {number: name for name, number in numbers.items()}
    program = seccomp.first(machine)
    allowed = {names[n] for n in range(600) if run(program, n, AUDIT[machine]) == seccomp.ALLOW}
    lacking = {name for name, number in numbers.items() if number < 0}
    conditional = {"seccomp"}  # all arguments zero is not how it is called
    assert (
        allowed == ({*seccomp.PLAIN, *seccomp.NEVER_EXECUTABLE, "prlimit64", "timer_settime"} - lacking) - conditional
    )
    assert len(allowed) <= 25
    refused = {names[n] for n in range(600) if run(program, n, AUDIT[machine]) == seccomp.EPERM}
    assert refused == set(seccomp.REFUSED)
    for number in (-1, 1 << 31, 0x40000000, 0x40000000 | numbers["read"], 2**32 - 1):
        assert run(program, number, AUDIT[machine]) == seccomp.KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architecture_is_killed(machine: str) -> None:
    for program in (seccomp.first(machine), seccomp.second(machine)):
        for audit in (0, 0x40000003, *(mark for name, mark in AUDIT.items() if name != machine)):
            assert run(program, table(machine)["read"], audit) == seccomp.KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_arguments(machine: str) -> None:
    numbers, audit, program = table(machine), AUDIT[machine], seccomp.first(machine)
    for name in ("mmap", "mprotect"):
        for protection in range(16):
            verdict = run(program, numbers[name], audit, (0, 0, protection, 0, 0, 0))
            assert verdict == (seccomp.KILL if protection & 4 else seccomp.ALLOW), (name, protection)
    assert run(program, numbers["prlimit64"], audit, (1, 0, 0, 0, 0, 0)) == seccomp.KILL
    assert run(program, numbers["prlimit64"], audit, (1 << 32, 0, 0, 0, 0, 0)) == seccomp.KILL
    assert run(program, numbers["seccomp"], audit, (1, 0, 1, 0, 0, 0)) == seccomp.ALLOW
    for operation, flags in ((1, 8), (0, 0), (3, 0)):  # 8 asks for a listener
        assert run(program, numbers["seccomp"], audit, (operation, flags, 1, 0, 0, 0)) == seccomp.KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_second_filter_takes_back_arming_and_nothing_else(machine: str) -> None:
    program, numbers = seccomp.second(machine), table(machine)
    killed = {n for n in range(600) if run(program, n, AUDIT[machine]) == seccomp.KILL}
    assert killed == {numbers[name] for name, _ in seccomp.UNTIL_ARMED}


def test_a_runtime_gets_what_stands_in_the_table_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    writev, audit = table("x86_64")["writev"], AUDIT["x86_64"]
    monkeypatch.setattr(seccomp, "ADDED", {"other": ("writev",)})
    assert run(seccomp.first("x86_64", "other"), writev, audit) == seccomp.ALLOW
    assert run(seccomp.first("x86_64", "quickjs"), writev, audit) == seccomp.KILL
