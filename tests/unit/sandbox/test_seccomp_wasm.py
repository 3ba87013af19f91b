"""The seccomp filters of the runtimes for WebAssembly, for both architectures and every call number."""

import pytest
from tests.unit.sandbox.filter_machine import MACHINES, run

from lodger.sandbox.walls import seccomp
from lodger.sandbox.walls.syscalls import AUDIT, table

MAX_INSTRUCTIONS = 30
READ, WRITE, EXECUTE = 1, 2, 4


def protecting(program: bytes, machine: str, name: str, protection: int) -> int:
    return run(program, table(machine)[name], AUDIT[machine], (0, 0, protection, 0, 0, 0))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("runtime", ["wasm", "wasm_compiler"])
def test_list_is_short_and_adds_nothing_but_a_barrier(machine: str, runtime: str) -> None:
    def allowed(which: str) -> set[int]:
        program = seccomp.first_filter(machine, which)
        return {number for number in range(600) if run(program, number, AUDIT[machine]) == seccomp.ALLOW}

    more = allowed(runtime) - allowed("quickjs")
    assert more == ({table(machine)["membarrier"]} if machine == "aarch64" else set())
    assert len(allowed(runtime)) + len(seccomp.UNTIL_ARMED) <= MAX_INSTRUCTIONS


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


EXECUTABLE, BOTH = EXECUTE, WRITE | EXECUTE


def _rank(verdict: int) -> int:
    return [seccomp.KILL, seccomp.EPERM, seccomp.ALLOW].index(verdict)


@pytest.mark.parametrize("machine", MACHINES)
def test_only_handlers_of_faults_can_be_given_back(machine: str) -> None:
    number, program = table(machine)["rt_sigaction"], seccomp.first_filter(machine, "wasm")
    for signal in range(70):
        verdict = run(program, number, AUDIT[machine], (signal, 0, 0, 0, 0, 0))
        assert verdict == (seccomp.ALLOW if signal in (4, 7, 8, 11) else seccomp.EPERM)
