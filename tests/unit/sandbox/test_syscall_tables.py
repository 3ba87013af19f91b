"""System call numbers of the filters and of the attacks agree with the kernel's headers, for both architectures."""

import re
from pathlib import Path

import pytest
from tests.escape.owned_attacks import CALLS

from lodger.sandbox.walls.syscalls import AUDIT, table

#: Header of the aarch64 table, on any machine; the location of the other depends on the packages.
GENERIC = Path("/usr/include/asm-generic/unistd.h")
X86 = (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h"))


def generic() -> dict[str, int]:
    text = GENERIC.read_text()
    found = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", text)}
    wide = {name: int(number) for name, number in re.findall(r"#define __NR3264_(\w+)\s+(\d+)", text)}
    return found | {name: wide[of] for name, of in re.findall(r"#define __NR_(\w+) __NR3264_(\w+)", text) if of in wide}


def numbers(machine: str) -> dict[str, int]:
    if machine == "aarch64":
        if not GENERIC.exists():
            pytest.skip("NOT TESTED with kernel headers: they are not installed (apt-get install linux-libc-dev)")
        return generic()
    place = next((path for path in X86 if path.exists()), None)
    if place is None:
        pytest.skip("NOT TESTED with kernel headers: they are not installed (apt-get install linux-libc-dev)")
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", place.read_text())}


def right(kernels: dict[str, int], name: str, number: int) -> bool:
    if name in kernels:
        return number == kernels[name]
    return number == -1 or number > max(kernels.values())  # newer than these headers


@pytest.mark.parametrize("machine", list(AUDIT))
def test_the_filters_numbers(machine: str) -> None:
    kernels = numbers(machine)
    for name, number in table(machine).items():
        assert right(kernels, name, number), name


@pytest.mark.parametrize("machine", list(AUDIT))
def test_the_attackers_numbers(machine: str) -> None:
    kernels = numbers(machine)
    for name, pair in CALLS.items():
        number = pair[machine == "aarch64"]
        assert number == -1 or right(kernels, name, number), name
