"""The seccomp filters, run by a small interpreter of classic BPF for both architectures and every call number."""

import struct

import pytest

from lodger.sandbox.walls import seccomp
from lodger.sandbox.walls.syscalls import AUDIT, table

MACHINES = ("x86_64", "aarch64")
RUNTIMES = ("quickjs", "quickjs-native", "wasm", "wasm_compiler")


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


@pytest.mark.parametrize("machine", MACHINES)
def test_first_filter_over_every_number(machine: str) -> None:
    numbers = table(machine)
    names = {number: name for name, number in numbers.items()}
    program = seccomp.first_filter(machine)
    allowed = {names[n] for n in range(600) if run(program, n, AUDIT[machine]) == seccomp.ALLOW}
    lacking = {name for name, number in numbers.items() if number < 0}
    conditional = {"seccomp", "madvise", "futex"}  # not allowed with zero arguments
    listed = {*seccomp.PLAIN, *seccomp.PARTLY_ALLOWED, *seccomp.NEVER_EXECUTABLE, "prlimit64", "timer_settime"}
    assert allowed == listed - lacking - conditional
    assert len(allowed) <= 25
    refused = {names[n] for n in range(600) if run(program, n, AUDIT[machine]) == seccomp.EPERM}
    assert refused == set(seccomp.REFUSED)
    for number in (-1, 1 << 31, 0x40000000, 0x40000000 | numbers["read"], 2**32 - 1):
        assert run(program, number, AUDIT[machine]) == seccomp.KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architecture_is_killed(machine: str) -> None:
    for program in (seccomp.first_filter(machine), seccomp.second_filter(machine)):
        for audit in (0, 0x40000003, *(mark for name, mark in AUDIT.items() if name != machine)):
            assert run(program, table(machine)["read"], audit) == seccomp.KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_arguments(machine: str) -> None:
    numbers, audit, program = table(machine), AUDIT[machine], seccomp.first_filter(machine)
    for name in ("mmap", "mprotect"):
        for protection in range(16):
            verdict = run(program, numbers[name], audit, (0, 0, protection, 0, 0, 0))
            assert verdict == (seccomp.KILL if protection & 4 else seccomp.ALLOW), (name, protection)
    assert run(program, numbers["prlimit64"], audit, (1, 0, 0, 0, 0, 0)) == seccomp.KILL
    assert run(program, numbers["prlimit64"], audit, (1 << 32, 0, 0, 0, 0, 0)) == seccomp.KILL
    assert run(program, numbers["seccomp"], audit, (1, 0, 1, 0, 0, 0)) == seccomp.ALLOW
    for operation, flags in ((1, 8), (0, 0), (3, 0)):  # 8 requests a listener
        assert run(program, numbers["seccomp"], audit, (operation, flags, 1, 0, 0, 0)) == seccomp.KILL


#: By name: index of the argument, allowed values, denied values. Constants from linux/futex.h, mman.h and time.h.
HALVES = {
    "futex": (1, {op | flags for op in (0, 1, 9, 10) for flags in (128, 384)}, range(512)),
    "madvise": (2, {4, 8}, range(128)),
    "clock_gettime": (0, set(range(16)), range(-1024, 1024)),
    "mmap": (3, {flags for flags in range(1 << 19) if not flags & 0x40101}, range(0, 1 << 19, 1 << 5)),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", HALVES)
def test_only_the_harmless_half_passes(machine: str, name: str) -> None:
    index, right, tried = HALVES[name]
    for runtime in RUNTIMES:
        program = seccomp.first_filter(machine, runtime)
        for value in (*tried, 0x1, 0x22, 0x40022, 0x122, 0x20022, 0x4022):
            arguments = tuple(value if place == index else 0 for place in range(6))
            verdict = run(program, table(machine)[name], AUDIT[machine], arguments)
            assert verdict == (seccomp.ALLOW if value in right else seccomp.KILL), hex(value)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("runtime", ["", "quickjs"])
def test_second_filter_takes_back_arming_and_nothing_else(machine: str, runtime: str) -> None:
    program, numbers = seccomp.second_filter(machine, runtime), table(machine)
    killed = {n for n in range(600) if run(program, n, AUDIT[machine]) == seccomp.KILL}
    own = ("recvmsg", "pread64", "close") if runtime else ()  # of an image's file
    assert killed == {numbers[name] for name in (*(name for name, _ in seccomp.UNTIL_ARMED), *own)}


def test_a_runtime_gets_what_stands_in_the_table_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    writev, audit = table("x86_64")["writev"], AUDIT["x86_64"]
    monkeypatch.setattr(seccomp, "RUNTIME_CALLS", {"other": ("writev",)})
    assert run(seccomp.first_filter("x86_64", "other"), writev, audit) == seccomp.ALLOW
    assert run(seccomp.first_filter("x86_64", "quickjs"), writev, audit) == seccomp.KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_no_number_takes_a_long_way(machine: str) -> None:
    """The kernel runs a new filter for each number: a list instead of a tree cost 60 µs per worker."""
    for runtime in RUNTIMES:
        for program in (seccomp.first_filter(machine, runtime), seccomp.second_filter(machine, runtime)):
            assert max(walked(program, number, AUDIT[machine])[1] for number in range(600)) <= 20


def test_a_long_branch_is_jumped_over() -> None:
    """A conditional jump reaches 255 instructions; beyond that an unconditional one is needed."""
    from lodger.sandbox.walls import bpf

    body = b"".join(bpf.when(0, (value,), seccomp.EPERM) for value in range(40)) + bpf.answer(seccomp.ALLOW)
    rules = dict.fromkeys(range(0, 40, 2), body)
    program = bpf.program("x86_64", rules, seccomp.KILL, seccomp.KILL)
    for number in range(42):
        expected = seccomp.EPERM if number in rules else seccomp.KILL
        assert run(program, number, AUDIT["x86_64"], (7, 0, 0, 0, 0, 0)) == expected
        if number in rules:
            assert run(program, number, AUDIT["x86_64"], (77, 0, 0, 0, 0, 0)) == seccomp.ALLOW


#: Protections of pages: executable, and writable too.
EXECUTABLE, BOTH = 4, 6


def protecting(program: bytes, machine: str, name: str, protection: int) -> int:
    return run(program, table(machine)[name], AUDIT[machine], (0, 0, protection, 0, 0, 0))


@pytest.mark.parametrize("machine", MACHINES)
def test_protection_by_runtime_before_and_after_arming(machine: str) -> None:
    for runtime, before, after in (
        ("quickjs", seccomp.KILL, seccomp.KILL),
        ("wasm", seccomp.ALLOW, seccomp.KILL),
        ("wasm_compiler", seccomp.ALLOW, seccomp.ALLOW),
    ):
        first, second = seccomp.first_filter(machine, runtime), seccomp.second_filter(machine, runtime)
        for protection in range(8):
            executable, both = bool(protection & EXECUTABLE), protection & BOTH == BOTH
            early = protecting(first, machine, "mprotect", protection)
            # the kernel uses the strictest verdict of all filters
            late = min(early, protecting(second, machine, "mprotect", protection), key=_rank)
            assert early == (seccomp.KILL if both else before if executable else seccomp.ALLOW)
            assert late == (seccomp.KILL if both else after if executable else seccomp.ALLOW)
            mapped = protecting(first, machine, "mmap", protection)
            assert mapped == (seccomp.KILL if executable else seccomp.ALLOW)


def _rank(verdict: int) -> int:
    return [seccomp.KILL, seccomp.EPERM, seccomp.ALLOW].index(verdict)


@pytest.mark.parametrize("machine", MACHINES)
def test_only_handlers_of_faults_can_be_given_back(machine: str) -> None:
    number, program = table(machine)["rt_sigaction"], seccomp.first_filter(machine, "wasm")
    for signal in range(70):
        verdict = run(program, number, AUDIT[machine], (signal, 0, 0, 0, 0, 0))
        assert verdict == (seccomp.ALLOW if signal in (4, 7, 8, 11) else seccomp.EPERM)
