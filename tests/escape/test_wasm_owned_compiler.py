"""A compiler worker taken over by a module: whatever it sends, it gains nothing beyond its own tenant's runs.

The probe runtime replaces it: the bytes sent as a module are Python code in its format.
"""

import asyncio
import gc

import pytest
from tests.escape.code_probe_runtime import FORTY_TWO
from tests.escape.commands import HELLO, MIB, Commands
from tests.escape.matrix.pools import WeakPool
from tests.escape.probing import PROBE, Echo

from lodger.escape.invariants import resident_bytes
from lodger.escape.runner import started
from lodger.sandbox import Bundle, Job, Limits, Outcome, Report
from lodger.sandbox.wasm import compiler
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.compiler import Compiler
from lodger.sandbox.wasm.sealed_code import SealedCode
from lodger.sandbox.workers import codec as said
from lodger.sandbox.workers.worker_run import WorkerRun

SEND = "send = lambda n: channel.send(23, b'x' * n)\n"


def compile_by(code: str, **limits: int) -> SealedCode | Report:
    """Return the parent's result for a compiler that runs ``code`` instead."""

    async def go() -> SealedCode | Report:
        pool = WeakPool({"runtime_path": PROBE}, runtime="wasm_compiler", size=1, profile="trusted")
        code_cache = CodeCache()
        await pool.start()
        try:
            wasm = said.bundle(Bundle({"main.js": SEND + code}))
            return await Compiler(pool, code_cache, Limits(**limits)).code(Job(Bundle({}, wasm=wasm)))
        finally:
            await pool.stop()
            code_cache.close()

    return asyncio.run(go())


@pytest.mark.parametrize(
    "code",
    [
        "done('0')", "done('null')", "send(10); done('11')", "send(10); done('9')", "send(10); done('10' + ' ' * 9)",
        "log('hello')", "ask(1, 'mail.send', '[]')", "channel.send(22, bytes(4))", "channel.send(24, b'')",
        "channel.send(16, b'')", "fail('ok')", "fail('engine_fault')", "fail('compile_error', 'no json')",
    ],
)  # fmt: skip
def test_what_is_no_answer_is_a_protocol_error(code: str) -> None:
    found = compile_by(code)
    assert isinstance(found, Report)
    assert found.outcome is Outcome.PROTOCOL_ERROR


def test_whole_code_is_taken() -> None:
    found = compile_by("send(10); send(5); done('15')")
    assert isinstance(found, SealedCode)
    assert found.content() == b"x" * 15
    found.close()


def test_endless_code_stops_at_the_bound_and_the_parent_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "MAX_CODE_BYTES", 8 * MIB)
    after = []
    for _ in range(3):  # the first one's memory may stay with the allocator
        found = compile_by("while True: send(1 << 20)")
        assert isinstance(found, Report)
        assert found.outcome is Outcome.SOURCE_TOO_LARGE
        gc.collect()  # garbage is not growth
        after.append(resident_bytes())
    assert after[2] - after[0] < 8 * MIB


def test_a_frame_that_is_too_large_is_not_waited_for() -> None:
    found = compile_by("os.write(channel._descriptor, struct.pack('<IB', 1 << 30, 23)); time.sleep(60)")
    assert isinstance(found, Report)
    assert found.outcome is Outcome.PROTOCOL_ERROR


async def test_nothing_but_a_compiler_may_send_code() -> None:
    async with started(WeakPool({"runtime_path": PROBE}, size=1, profile="trusted")) as pool:
        job = Job(Bundle({"main.js": SEND + "send(10); done('10')"}))
        assert (
            await pool.attempt(lambda worker, around: WorkerRun(worker, job, Echo(), around))
        ).outcome is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize("code", [b"", b"x" * 5000, b"\x7fELF" + bytes(5000), FORTY_TWO * 1000], ids=len)
def test_forged_code_does_not_load_and_is_thrown_away(code: bytes) -> None:
    wasm = Commands()
    try:
        code_cache = wasm.pool.code_cache
        binding = CodeCache.binding("acme", HELLO)
        sealing = code_cache.begin(binding)
        sealing.write(code or b"\0")
        code_cache.keep("acme", binding, sealing.finish()).close()
        assert wasm(HELLO).outcome is Outcome.WORKER_LOST
        assert wasm(HELLO).outcome is Outcome.OK
        assert wasm.pool.compiler.compiled == 1
    finally:
        wasm.close()
