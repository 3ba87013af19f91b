"""Native code in an armed worker tries every system call there is: what is not on the list ends the process, each time."""

import asyncio
import errno
import platform

import pytest
from tests.escape.probing import Echo, probe_job, probe_pool

from lodger.sandbox.walls import seccomp
from lodger.sandbox.walls.syscalls import NUMBER

#: Beyond the newest call of any kernel in use, so that new ones are met too.
LAST = 520
#: uretprobe and uprobe on x86_64: newer kernels let them pass every filter. They do nothing for a caller that is no probe's trampoline:
#: SIGILL for the first, ENXIO for the second.
EXEMPT = {335: None, 336: f"-{errno.ENXIO}"} if platform.machine() == "x86_64" else {}


@pytest.mark.parametrize("runtime", ["quickjs", "wasm"])
def test_every_number(runtime: str) -> None:
    until_armed = {name for name, _ in seccomp.UNTIL_ARMED}
    survivable = {
        NUMBER[name]
        for name in (*seccomp.PLAIN, *seccomp.NEVER_EXECUTABLE, *seccomp.REFUSED)
        if name not in until_armed
    }
    deadly = [number for number in range(LAST) if number not in survivable]

    tried: set[int] = set()
    survived: dict[int, str | None] = {}

    async def go() -> None:
        pool = probe_pool(size=4, runtime=runtime)
        await pool.start()

        async def attempt(numbers: "list[int]") -> None:
            for number in numbers:
                job = probe_job(f"done(str(syscall({number}, 0, 0, 0, 0, 0, 0)))", wall_ms=5000)
                report = await pool.run(job, Echo())
                stopped = report.error is not None and "SIGSYS" in report.error.message
                harmless = number in EXEMPT and report.result == EXEMPT[number]
                if not stopped and not harmless:
                    survived[number] = report.result
                tried.add(number)

        await asyncio.gather(*(attempt(deadly[start::4]) for start in range(4)))
        await pool.stop()

    asyncio.run(go())
    assert len(tried) > 450
    assert survived == {}


def test_refused_calls_answer_eperm_and_reach_nobody() -> None:
    async def go() -> list[str | None]:
        pool = probe_pool(size=2)
        await pool.start()
        try:
            codes = [
                f"done(str(syscall({NUMBER['tgkill']}, os.getpid(), os.getpid(), 9)))",
                f"done(str(syscall({NUMBER['tgkill']}, 1, 1, 9)))",
                f"done(str(syscall({NUMBER['rt_sigaction']}, 9, 0, 0, 8)))",
            ]
            return [(await pool.run(probe_job(code), Echo())).result for code in codes]
        finally:
            await pool.stop()

    assert asyncio.run(go()) == ["-1"] * 3


def test_list_is_short() -> None:
    allowed = {*seccomp.PLAIN, *seccomp.NEVER_EXECUTABLE} - {name for name, number in NUMBER.items() if number < 0}
    assert len(allowed) <= (25 if platform.machine() == "x86_64" else 24)
