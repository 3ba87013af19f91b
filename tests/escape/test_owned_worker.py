"""Attacks of native code inside a worker: denied by the filter and, without the filter, by the other walls.

After every attack the canaries are unchanged and another tenant's run is correct; the parent does not die, hang or grow.
"""

import asyncio
import gc
import os
import time
from collections.abc import Iterable, Iterator

import pytest
from tests.escape import owned_attacks
from tests.escape.owned_attacks import ATTACKS, Attack
from tests.escape.probing import Echo, probe_job, probe_pool

from lodger.escape.invariants import Canaries, children, resident_bytes
from lodger.escape.runner import started
from lodger.sandbox import Limits, Outcome, Pool, Report
from lodger.sandbox.job import Bundle, Job
from lodger.sandbox.outcome import WORKER_MAY_REPORT

RUNTIMES = ("quickjs", "quickjs-native", "wasm", "wasm_compiler")
MIB = 1 << 20
#: Attacks on each runtime: how its filter treats arguments; what it does with every number is in test_every_syscall.py.
OF_EACH_RUNTIME = (*owned_attacks.LIMITS, *owned_attacks.HALVES, *owned_attacks.DESCRIPTORS)
#: Coarse bound for the time that an attack may block the event loop.
_LONGEST_STILL_S = 1.0


class Lag:
    """Measurement of the longest time for which the event loop is blocked, in CPU time."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.01)
            self.longest_s = max(self.longest_s, time.thread_time() - before)

    async def stop(self) -> float:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        return self.longest_s


@pytest.fixture
def canaries() -> Iterator[Canaries]:
    made = Canaries()
    yield made
    made.close()


def reported(report: Report) -> str:
    """Return the outcome of an attack as text."""
    if report.error is not None and "SIGSYS" in report.error.message:
        return "killed"
    return report.result if report.result is not None else f"{report.outcome}: {report.error and report.error.message}"


def is_as_expected(attack: Attack, verdict: str, bare: bool) -> bool:
    """Whether an attack ended as the table says, with its walls or, if ``bare``, without."""
    if not bare:
        return verdict == attack.held
    return verdict.removeprefix("-").isdigit() and int(verdict) in attack.bare


def held() -> int:
    """Return this process's memory after garbage collection."""
    gc.collect()
    return resident_bytes()


async def wait_ready(pool: Pool, workers: int) -> None:
    """Wait until so many workers are ready."""
    async with asyncio.timeout(120):
        while len(pool.ready) < workers:  # noqa: ASYNC110 - the pool has no event for readiness
            await asyncio.sleep(0.001)


async def wrong_results(pool: Pool, canaries: Canaries, attacks: list[Attack], *, bare: bool) -> dict[str, str]:
    """Run all attacks and return wrong results by attack."""
    assert pool.zygote is not None
    (zygote,) = children(pool.zygote.launcher_pid)
    await pool.run(probe_job("done('1')"), Echo())
    await wait_ready(pool, 3)
    canaries.record_reference(range(1) if os.geteuid() else range(1, 2))
    wrong: dict[str, str] = {}
    before = await asyncio.to_thread(held)  # garbage collection can take a second
    for attack in attacks:
        await wait_ready(pool, 3)
        ids: dict[str, object] = {
            "engine": os.getpid(), "zygote": zygote, "sibling": pool.ready[-1], "path": canaries.path, "port": canaries.port,
            "secret": canaries.secret, "shm": 0x51077,
        }  # fmt: skip
        verdict = reported(await pool.run(probe_job(owned_attacks.source(attack, ids), wall_ms=60_000), Echo()))
        next_run = await pool.run(probe_job("done('\"well\"')"), Echo())
        await wait_ready(pool, 3)
        faults = canaries.changes()
        if not is_as_expected(attack, verdict, bare):
            faults.append(f"ended as {verdict}, wanted {attack.bare if bare else attack.held}")
        if next_run.result != '"well"':
            faults.append(f"the next run ended as {next_run.outcome}")
        if faults:
            wrong[attack.name] = "; ".join(faults)
    assert children(pool.zygote.launcher_pid) == (zygote,), "the zygote died"
    assert await asyncio.to_thread(held) - before < 8 * MIB, "the parent grew"
    return wrong


@pytest.mark.parametrize("runtime", RUNTIMES)
async def test_behind_all_walls(runtime: str, canaries: Canaries) -> None:
    async with started(probe_pool(size=3, runtime=runtime)) as pool:
        lag = Lag()
        attacks = ATTACKS if runtime == "quickjs" else OF_EACH_RUNTIME
        wrong, still_s = await wrong_results(pool, canaries, list(attacks), bare=False), await lag.stop()
    assert wrong == {}
    assert still_s < _LONGEST_STILL_S


async def test_without_the_filter_the_other_walls_hold(canaries: Canaries) -> None:
    async with started(probe_pool(["seccomp"], size=3)) as pool:
        if missing := [wall for wall, stands in pool.walls.items() if not stands and wall != "seccomp"]:
            pytest.skip(f"this host does not raise {', '.join(missing)}")
        assert await wrong_results(pool, canaries, [attack for attack in ATTACKS if attack.bare], bare=True) == {}


def test_the_table_is_whole() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 130
    only_the_filter = {attack.name for attack in ATTACKS if not attack.bare}
    assert {"signal-first", "limit-first", "signal-all", "own-socket-rights"} <= only_the_filter
    assert all(
        name.startswith("socket-")
        for name in only_the_filter - {"signal-first", "limit-first", "signal-all", "own-socket-rights"}
    )


# -- its own socket --


async def answered(code: str, without: tuple[str, ...] = (), **limits: int) -> tuple[Report, int]:
    """Run native code and return its report and the number of new descriptors of this process."""
    async with started(probe_pool(without, size=1)) as pool:
        await pool.run(probe_job("done('1')"), Echo())
        await wait_ready(pool, 1)
        before = len(os.listdir("/proc/self/fd"))
        report = await pool.run(probe_job(code, **limits), Echo())
        await wait_ready(pool, 1)
        return report, len(os.listdir("/proc/self/fd")) - before


async def outcomes(claimed: Iterable[str]) -> dict[str, Outcome]:
    """Return what becomes of each outcome that a taken-over worker reports of itself, one worker each."""
    async with started(probe_pool((), size=1)) as pool:
        return {name: (await pool.run(probe_job(f"fail({name!r}, '{{}}')"), Echo())).outcome for name in claimed}


def test_outcomes_that_only_the_parent_decides() -> None:
    claimed = [*(str(each) for each in Outcome if each not in WORKER_MAY_REPORT), "ok", "", "nonsense", "x" * 255]
    assert asyncio.run(outcomes(claimed)) == dict.fromkeys(claimed, Outcome.PROTOCOL_ERROR)


def test_outcomes_that_blame_its_own_script_are_taken() -> None:
    claimed = sorted(WORKER_MAY_REPORT - {Outcome.OK})
    assert asyncio.run(outcomes(str(each) for each in claimed)) == {str(each): each for each in claimed}
    assert {each.blames for each in claimed} == {"tenant"}


def test_descriptors_that_it_sends_never_arrive() -> None:
    code = """
import _socket
mine = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fileno=channel._descriptor)
other = os.dup(channel._descriptor)
frame = struct.pack("<IB", 5, 19) + b"\\x01text"
for _ in range(20):
    mine.sendmsg([frame], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("ii", other, other))])
done("1")
"""
    report, more = asyncio.run(answered(code.replace("\\\\", "\\"), without=("seccomp", "rlimits")))
    assert report.outcome is Outcome.OK, report
    assert more == 0, "descriptors of the worker's came along with its frames"


@pytest.mark.parametrize(
    "code",
    [
        "os.write(channel._descriptor, b'\\x10\\0')\nwhile True: time.sleep(1) if False else None",
        "os.write(channel._descriptor, struct.pack('<IB', 100, 19) + b'x' * 50)\nwhile True: pass",
        (
            "frame = struct.pack('<IB', 1000, 19) + b'\\x01' + b'x' * 999\n"
            "for at in range(len(frame)):\n    os.write(channel._descriptor, frame[at:at + 1])\nwhile True: pass"
        ),
    ],
    ids=["half a head", "half a frame", "a byte at a time"],
)
def test_half_a_frame_and_then_nothing(code: str) -> None:
    report, more = asyncio.run(answered(code, wall_ms=300, cpu_ms=5000))
    assert report.outcome is Outcome.WALL_LIMIT
    assert report.usage.wall_ms < 300 + 20 * 1000
    assert more == 0


async def test_what_it_says_of_itself_names_nobody_else() -> None:
    """A tenant, action or tag inside a frame is text: the socket identifies the attempt."""
    host = Echo()
    code = 'ask(1, \'echo\', \'{"tenant":"other","action":"x"}\'); hear(); done(\'1\')'

    async with started(probe_pool(size=1)) as pool:
        assert (
            await pool.run(Job(Bundle({"main.js": code}), Limits(), tag="mine", tenant="mine"), host)
        ).outcome is Outcome.OK
    assert host.asked == [("echo", '{"tenant":"other","action":"x"}')]


# -- two compromised workers --

#: A read-only page of the C library's file, mapped by every worker: the same key for a shared futex.
_SHARED_WORD = "word = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value & ~7; "
_EXPECTED = "value = ctypes.c_uint32.from_address(word).value; "
WAITER = (
    _SHARED_WORD
    + _EXPECTED
    + """
wait = struct.pack("qq", 20, 0)
log("waiting")
done(str(syscall(202 if os.uname().machine == "x86_64" else 98, word, {flag}, value, wait, 0, 0)))
"""
)
WAKER = (
    _SHARED_WORD
    + """
number, woken, until = 202 if os.uname().machine == "x86_64" else 98, 0, time.monotonic() + 10
while not woken and time.monotonic() < until:
    woken = syscall(number, word, 1 | {flag}, 1, 0, 0, 0)
done(str(woken))
"""
)


async def crossed(flag: int, without: tuple[str, ...] = ()) -> tuple[str, str]:
    """Let one taken-over worker wait on a futex in a mapped file and another wake it; return both verdicts."""
    async with started(probe_pool(without, size=2)) as pool:
        await wait_ready(pool, 2)
        waits = asyncio.create_task(pool.run(probe_job(WAITER.format(flag=flag), wall_ms=20_000), Echo()))
        waking = asyncio.create_task(
            pool.run(probe_job(WAKER.format(flag=flag), wall_ms=20_000, cpu_ms=15_000), Echo())
        )
        woken = reported(await waking)
        if woken != "1":
            waits.cancel()
        return reported(await waits) if woken == "1" else "", woken


def test_two_taken_over_workers_share_no_futex() -> None:
    assert asyncio.run(crossed(0)) == ("", "killed")


def test_without_the_filter_a_futex_in_a_mapped_file_is_a_channel() -> None:
    assert asyncio.run(crossed(0, without=("seccomp",))) == ("0", "1")


# -- kernel memory --

#: Reads one byte per 2 MiB of read-only memory: uses no data page, but a page table of 4 KiB that RLIMIT_DATA does not count.
PAGE_TABLES = """
mapped = 0
while mapped < 64:
    page = syscall({mmap}, 0, 1 << 30, 1, 0x22, -1, 0)
    if -4096 < page < 0:
        break
    for at in range(0, 1 << 30, 2 << 20):
        ctypes.string_at(page + at, 1)
    mapped += 1
done(str(mapped))
""".format(mmap=owned_attacks.NUMBERS["mmap"])


@pytest.mark.parametrize("runtime", RUNTIMES)
async def test_page_tables_are_bounded_by_the_address_space(runtime: str) -> None:
    async with started(probe_pool(size=1, runtime=runtime)) as pool:
        mapped_gib = int(reported(await pool.run(probe_job(PAGE_TABLES), Echo())))
    assert mapped_gib <= (8 if runtime.startswith("wasm") else 0)


def test_without_limits_page_tables_are_unbounded() -> None:
    report, _ = asyncio.run(answered(PAGE_TABLES, without=("rlimits",)))
    assert reported(report) == "64"
