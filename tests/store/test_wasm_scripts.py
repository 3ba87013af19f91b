"""Scripts that are WebAssembly modules, in the ledger: versions, limits, the compiler's verdict at upload, code by tenant."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.escape.commands import HELLO, command
from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.service.checks.module_check import ModuleCheck
from lodger.engine.service.checks.trial_budget import TrialBudget
from lodger.engine.store.content_cache import KEPT_BYTES
from lodger.engine.sync import Engine
from lodger.sandbox.job import Job, Report
from lodger.sandbox.limits import Limits

OTHER = command("(call $say (i32.const 7))")


@pytest.fixture
def ledger(url: str, tmp_path: Path) -> Iterator[Bench]:
    clock = VirtualClock()
    settings = Settings(sqlite_synchronous="NORMAL", min_interval_s=1, cache_dir=tmp_path / "cache")
    with Engine.open(url, clock=clock, settings=settings) as engine:
        bench = Bench(engine, clock)
        bench.tenant("acme")
        yield bench


def test_versions(ledger: Bench) -> None:
    scripts = ledger.engine.scripts
    first = scripts.put("acme", "m", HELLO)
    assert (first.version, first.modules, first.wasm_bytes) == (1, {}, len(HELLO))
    assert scripts.put("acme", "m", HELLO) == first, "the same bytes again make no new version"
    assert scripts.put("acme", "m", OTHER).version == 2
    assert scripts.put("acme", "m", "export default () => 1").version == 3
    assert scripts.put("acme", "m", HELLO).version == 4
    assert [each.wasm_bytes for each in scripts.versions("acme", "m")] == [len(HELLO), None, len(OTHER), len(HELLO)]
    assert scripts.module("acme", "m") == scripts.module("acme", "m", 1) == HELLO
    assert scripts.module("acme", "m", 2) == OTHER
    with pytest.raises(InputError, match="JavaScript") as found:
        scripts.module("acme", "m", 3)
    assert found.value.code == "no_module"


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_any_bytes_are_compiled_first(ledger: Bench, kind: type) -> None:
    with pytest.raises(InputError) as found:
        ledger.engine.scripts.put("acme", "m", kind(HELLO[:-20]))
    assert found.value.code == "module_refused"
    assert ledger.engine.scripts.put("acme", "m", kind(HELLO)).wasm_bytes == len(HELLO)


def test_a_host_without_walls_stores_none(ledger: Bench) -> None:
    context = ledger.engine.context
    check = ModuleCheck(context.settings.model_copy(update={"walls_minimum": 99}), TrialBudget(context))
    with pytest.raises(Unavailable) as found:
        check.require("acme", HELLO, Limits())
    assert found.value.code == "too_few_walls"
    assert found.value.fix


def test_a_tenants_modules_compile_one_after_the_other_and_hold_up_nobody_else(
    ledger: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    order: list[bytes | None] = []
    held, free = threading.Event(), threading.Event()

    class Slow(ModuleCheck):
        async def compiled(self, job: Job) -> tuple[Report | None, float]:
            if job.bundle.wasm == b"first":
                held.set()
                free.wait(120)
            order.append(job.bundle.wasm)
            return None, 0.0

    slow = Slow(ledger.engine.context.settings, TrialBudget(ledger.engine.context))

    def check(tenant: str, module: bytes) -> threading.Thread:
        thread = threading.Thread(target=slow.require, args=(tenant, module, Limits()))
        thread.start()
        return thread

    first = check("acme", b"first")
    held.wait(120)
    second = check("acme", b"second")
    check("zeta", b"other").join()
    assert order == [b"other"]
    free.set()
    first.join()
    second.join()
    assert order == [b"other", b"first", b"second"]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # they are kept in memory
def test_kept_sources_are_bounded_in_bytes(ledger: Bench) -> None:
    sources = ledger.engine.context.content_cache
    given: list[Any] = []
    with ledger.engine.context.database.write() as connection:
        for number in range(5):
            script = ledger.engine.context.ids.new()
            connection.execute(
                text(
                    "INSERT INTO lodger_scripts (tenant_id, id, name, version, created_us) VALUES ('acme', :id, :name, 1, 0)"
                ),
                {"id": script, "name": f"n{number}"},
            )
            connection.execute(
                text(
                    "INSERT INTO lodger_script_versions (tenant_id, script_id, version, modules, digest, created_us, wasm)"
                    " VALUES ('acme', :id, 1, '{}', 'x', 0, :wasm)"
                ),
                {"id": script, "wasm": os.urandom(KEPT_BYTES // 3)},
            )
            key = ("acme", script, 1)
            given.append((key, sources.versions(connection, [key])[key]))
            assert len(given[-1][1].wasm or b"") == KEPT_BYTES // 3
    with ledger.engine.context.database.read() as connection:
        # What is kept is given again as the same object; asked from the newest, nothing that is kept is displaced by asking.
        same = [sources.versions(connection, [key])[key] is before for key, before in reversed(given)]
    assert same == [True, True, False, False, False], "two fit into what is kept"


def test_a_list_of_versions_carries_no_module(ledger: Bench) -> None:
    ledger.engine.scripts.put("acme", "m", HELLO)
    with ledger.engine.context.database.write() as connection:
        connection.execute(
            text("UPDATE lodger_script_versions SET wasm = :wasm WHERE wasm IS NOT NULL"), {"wasm": bytes(8 << 20)}
        )
    (version,) = ledger.engine.scripts.versions("acme", "m")
    assert version.wasm_bytes == 8 << 20
    assert not any(isinstance(getattr(version, name), bytes) for name in version.__slots__)
