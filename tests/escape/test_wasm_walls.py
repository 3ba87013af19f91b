"""W^X of compiled code, checked from inside by native code and from outside by /proc; and its sealed files."""

import asyncio
import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest
from tests.escape.commands import HELLO, Commands, command, data
from tests.escape.matrix.pools import WeakPool
from tests.escape.pool_processes import children_of
from tests.escape.probing import PROBE, Echo, probe_job
from tests.escape.standing import status

from lodger.escape.runner import started
from lodger.sandbox import Outcome, Report
from lodger.sandbox.errors import ZygoteFailed
from lodger.sandbox.job import LogLine

CODE_PROBE = str(Path(__file__).with_name("code_probe_runtime.py"))
EARLY = "at = plant(); marks['early'] = [protect(at, READ | EXECUTE), call(at)]"
MAKE = "at = marks['plant'](); done(str([marks['protect'](at, 5), marks['call'](at)]))"


def probe(code: str, runtime: str, early: str = "", without: str = "") -> Report:
    async def go() -> Report:
        settings = {"runtime_path": CODE_PROBE, "probe": PROBE, "early": early, "without": without}
        async with started(WeakPool(settings, runtime=runtime, size=1, profile="trusted")) as pool:
            return await pool.run(probe_job(code), Echo())

    return asyncio.run(go())


def stopped(report: Report) -> bool:
    """Whether a system call has killed the worker."""
    return report.outcome is Outcome.CRASHED and report.error is not None and "SIGSYS" in report.error.message


def test_code_becomes_executable_before_a_worker_is_armed_and_never_after() -> None:
    assert probe("done(str(marks['early']))", "wasm", EARLY).result == "[0, 42]"
    assert stopped(probe(MAKE, "wasm", EARLY))


def test_the_same_code_runs_when_the_filter_is_taken_away() -> None:
    assert probe(MAKE, "wasm", without="seccomp").result == "[0, 42]"


def test_code_made_early_cannot_be_written_any_more() -> None:
    rewrite = "at = marks['at']; done(str([marks['protect'](at, 3), marks['protect'](at, 5)]))"
    assert stopped(probe(rewrite, "wasm", EARLY + "; marks['at'] = at"))
    assert probe(rewrite, "wasm", EARLY + "; marks['at'] = at", without="seccomp").result == "[0, 0]"


@pytest.mark.parametrize("runtime", ["wasm", "wasm_compiler"])
@pytest.mark.parametrize("attack", ["protect(page(), 7)", "page(5)", "page(7)"])
def test_never_writable_and_executable_at_once_nor_mapped_so(runtime: str, attack: str) -> None:
    with pytest.raises(ZygoteFailed, match="worker"):
        probe("done('0')", runtime, attack)


def test_a_compiler_makes_code_to_its_end_and_nothing_else() -> None:
    assert probe(MAKE, "wasm_compiler").result == "[0, 42]"
    assert stopped(probe("at = marks['plant'](); done(str(marks['protect'](at, 7)))", "wasm_compiler"))
    assert stopped(probe("done(str(syscall(41 if os.uname().machine == 'x86_64' else 198, 1, 1, 0)))", "wasm_compiler"))


def test_javascript_never_makes_code() -> None:
    for early in ("", EARLY):
        if early:
            with pytest.raises(ZygoteFailed, match="worker"):
                probe("done('0')", "quickjs", early)
        else:
            assert stopped(probe(MAKE, "quickjs"))


class Looking(Echo):
    """Host that inspects the worker at a log line, while it sleeps."""

    def __init__(self, wasm: Commands) -> None:
        super().__init__()
        self.worker = wasm.pool.ready[0]
        self.seen: dict[str, Any] = {}

    def log(self, line: LogLine) -> None:
        worker = self.worker
        self.seen = {
            "status": status(worker),
            "maps": Path(f"/proc/{worker}/maps").read_text().splitlines(),
            "files": [os.readlink(f"/proc/{worker}/fd/{name}") for name in os.listdir(f"/proc/{worker}/fd")],
        }


def test_a_running_command_from_outside() -> None:
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED as root: an undumpable process shows itself to root only (run as root)")
    wasm = Commands()
    try:
        looking = Looking(wasm)
        pause = command(
            """(call $out (i32.const 2) (i32.const 1024) (i32.const 3)) (i32.store (i32.const 116) (i32.const 1))
               (i64.store (i32.const 124) (i64.const 300000000))
               (drop (call $poll_oneoff (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 300)))""",
            extra=data(1024, "hi\\n"),
        )
        report = wasm(pause, host=looking)
    finally:
        wasm.close()
    assert report.outcome is Outcome.OK
    facts = looking.seen["status"]
    assert (facts["NoNewPrivs"], facts["Seccomp"], facts["Seccomp_filters"]) == ("1", "2", "2")
    assert int(facts["CapEff"], 16) == 0
    rights = [line.split()[1] for line in looking.seen["maps"]]
    assert not [each for each in rights if "w" in each and "x" in each]
    assert any("memfd:lodger-code" in line and " r--p " in line for line in looking.seen["maps"])
    assert len(looking.seen["files"]) == 1, "the socket and no memory file"


@pytest.mark.parametrize(("without", "found"), [("", 0), ("seccomp", 1)])
def test_trampolines_are_not_writable(without: str, found: int) -> None:
    """ctypes maps the trampolines of callbacks writable and executable; writing there needs no mprotect."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED as root: an undumpable process shows itself to root only (run as root)")
    wasm = Commands(weak={"without": without})
    try:
        assert wasm.pool.zygote is not None
        (zygote,) = children_of(wasm.pool.zygote.launcher_pid)
        maps = Path(f"/proc/{zygote}/maps").read_text().splitlines()
        assert wasm(HELLO).outcome is Outcome.OK
    finally:
        wasm.close()
    assert min(1, len([line for line in maps if line.split()[1].startswith("rwx")])) == found


def test_sealed_code_cannot_be_changed() -> None:
    from lodger.sandbox.wasm.sealed_code import SealedCodeWriter

    sealing = SealedCodeWriter(b"k" * 32, b"binding")
    sealing.write(b"machine code")
    code = sealing.finish()
    try:
        for attack in (
            lambda: os.pwrite(code.descriptor, b"x", 0),
            lambda: os.ftruncate(code.descriptor, 1),
            lambda: os.ftruncate(code.descriptor, 99),
            lambda: fcntl.fcntl(code.descriptor, fcntl.F_ADD_SEALS, 0x10),
        ):
            with pytest.raises(OSError) as refused:
                attack()
            assert refused.value.errno == errno.EPERM
        assert code.content() == b"machine code"
    finally:
        code.close()
