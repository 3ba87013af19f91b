"""Every system call number by every entry point, made by native code in an armed worker: those not in the golden table end the process."""

import asyncio
import platform
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.escape.probing import Echo, probe, probe_job, probe_pool

from lodger.escape.runner import started
from lodger.sandbox import Outcome, Pool
from lodger.sandbox.walls import seccomp
from lodger.sandbox.walls.syscalls import NUMBER

RUNTIMES = ("quickjs", "quickjs-native", "wasm", "wasm_compiler")
#: Entry points into the kernel: x86_64, x32, and int 0x80.
GATES = {
    "x86_64": "done(str(syscall({0}, 0, 0, 0, 0, 0, 0)))",
    "x32": "done(str(syscall({0} | 0x40000000, 0, 0, 0, 0, 0, 0)))",
    "int80": "done(str(int80({0})))",
}
#: Numbers beyond the newest call of any kernel, to include future ones, and invalid numbers.
NUMBERS = (*range(521), 1023, 4096, 0x3FFFFFFF, -1)
KILLED = "killed"
_AT_ONCE = 6
X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the golden table was seen on x86_64 only")


def expected_verdicts(runtime: str) -> dict[int, str]:
    """Return the verdicts of the system calls that do not kill, by number, from the table."""
    tables = tomllib.loads(Path(__file__).with_name("golden_syscalls.toml").read_text())
    rows = tables["every"] | tables.get(runtime, {})
    return {int(number): verdict for number, (_, verdict) in rows.items() if verdict != KILLED}


async def verdict(pool: Pool, code: str, awaited: str) -> str:
    """Return how a snippet ends; one that unexpectedly waits gets more time, for a busy host."""
    report = await pool.run(probe_job(code, wall_ms=600, cpu_ms=500), Echo())
    if report.outcome is Outcome.WALL_LIMIT and awaited != "waits":
        report = await pool.run(probe_job(code, wall_ms=30_000, cpu_ms=500), Echo())
    if report.result is not None:
        return "positive" if int(report.result) > 4096 or 0 < int(report.result) < 4096 else report.result
    if report.outcome is Outcome.WALL_LIMIT:
        return "waits"
    message = "" if report.error is None else report.error.message
    if "SIGSYS" in message:
        return KILLED
    return "ended" if "exit code 0" in message else f"{report.outcome} {message.rpartition(' ')[2]}"


def verdicts(runtime: str, program: str, numbers: Iterable[int] = NUMBERS) -> dict[int, str]:
    """Make system calls in workers; return how each ended, by number."""
    found: dict[int, str] = {}
    known = expected_verdicts(runtime) if program == "x86_64" else {}

    async def go() -> None:
        async with started(probe_pool(size=_AT_ONCE, runtime=runtime)) as pool:
            left = list(numbers)

            async def some() -> None:
                while left:
                    number = left.pop()
                    found[number] = await verdict(pool, GATES[program].format(number), known.get(number, KILLED))

            await asyncio.gather(*(some() for _ in range(_AT_ONCE)))

    asyncio.run(go())
    return found


@X86
@pytest.mark.parametrize("program", GATES)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_number_ends_as_the_golden_table_says(runtime: str, program: str) -> None:
    # The filter compares the calling convention before the number: of the two that are always killed a sample is enough.
    numbers = NUMBERS if program == "x86_64" else NUMBERS[::8]
    found = verdicts(runtime, program, numbers)
    assert len(found) == len(numbers)
    survived = {number: seen for number, seen in found.items() if seen != KILLED}
    assert survived == (expected_verdicts(runtime) if program == "x86_64" else {})


@X86
def test_the_gates_lead_to_the_kernel_when_the_filter_is_taken_away() -> None:
    """Without this, the test above would pass with an entry point that does not work."""
    socket = probe("done(str(min(0, syscall(41, 1, 1, 0))))", ["seccomp"])
    assert socket.result == "0", socket
    old = probe("done(str(int80(20)))", ["seccomp"])  # getpid
    if old.outcome is Outcome.CRASHED:
        pytest.skip("this kernel has no gate for 32-bit programs")
    assert int(old.result or "0") > 0


def test_the_table_of_the_filter_is_the_golden_one() -> None:
    """Conversely, for every architecture: each allowed name is in the golden table."""
    rows = tomllib.loads(Path(__file__).with_name("golden_syscalls.toml").read_text())
    for runtime in RUNTIMES:
        names = {name for name, _ in (rows["every"] | rows.get(runtime, {})).values()} - {"uretprobe", "uprobe"}
        allowed = {*seccomp.PLAIN, *seccomp.PARTLY_ALLOWED, *seccomp.NEVER_EXECUTABLE, *seccomp.REFUSED}
        allowed |= {*seccomp.RUNTIME_CALLS.get(runtime, ())}
        assert allowed == names, runtime


async def test_refused_calls_answer_eperm_and_reach_nobody() -> None:
    async with started(probe_pool(size=2)) as pool:
        codes = [
            f"done(str(syscall({NUMBER['tgkill']}, os.getpid(), os.getpid(), 9)))",
            f"done(str(syscall({NUMBER['tgkill']}, 1, 1, 9)))",
            f"done(str(syscall({NUMBER['rt_sigaction']}, 9, 0, 0, 8)))",
        ]
        assert [(await pool.run(probe_job(code), Echo())).result for code in codes] == ["-1"] * 3
