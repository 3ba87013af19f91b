"""What is bent, foreign or hostile in an archive does not come in, and nothing of it is left behind."""

import base64
import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.features.archive.archives import MAIL, altered, contents, elsewhere, furnish, set_cell
from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.settings import Settings
from lodger.engine.features.archive import validation
from lodger.engine.features.archive.restore import TenantImport, in_chunks
from lodger.engine.store.context import StoreContext
from lodger.engine.store.schema.scheduling import actions
from lodger.engine.sync import Engine

__all__ = ["elsewhere"]

VERSIONS = "lodger_script_versions"
STRANGE = "01900000-0000-7000-8000-000000000000"


def set_header(**more: Any) -> Callable[[list[Any]], None]:
    """Return a change that sets fields of the archive's first line."""
    return lambda lines: lines[0].update(more)


def _is_waiting(row: Any) -> bool:
    return row["state"] in {"ready", "waiting_retry"}


def _is_ping(row: Any) -> bool:
    return row["kind"] == "ping"


def _packed(body: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(zlib.compress(body)).decode()}


def _own_version_of_the_platforms(lines: list[Any]) -> None:
    """Make a tenant's version out of a platform's: a run would find two contents under one number."""
    (bound,) = (line for line in lines if isinstance(line, list) and "bound" in line)
    at = next(at for at, line in enumerate(lines) if isinstance(line, dict) and line.get("table") == VERSIONS)
    own = [*lines[at + 1]]
    own[1], own[2] = bound[1], bound[3]
    lines.insert(at + 1, own)


BENT: dict[str, Callable[[list[Any]], None]] = {
    "no head": lambda lines: lines.pop(0),
    "another format": set_header(**{"lodger-tenant-archive": 2}),
    "a table less": lambda lines: lines.__delitem__(slice(1, 3)),
    "a table of nobody's": lambda lines: lines.append({"table": "lodger_tokens", "columns": ["id"]}),
    "a row more": lambda lines: lines.append([1]),
    "a row too short": lambda lines: lines[2].pop(),
    "columns in another order": lambda lines: lines[1]["columns"].reverse(),
    "text for a number": set_cell("lodger_scripts", "version", "1"),
    "a truth for a number": set_cell("lodger_scripts", "version", True),
    "a year that there is not": set_cell("lodger_actions", "due_at", 2**62),
    "a number beyond": set_cell("lodger_actions", "due_at", 10**30),
    "a fraction": set_cell("lodger_actions", "due_at", 1.5),
    "nothing where something is": set_cell("lodger_scripts", "name", None),
    "a NUL": set_cell("lodger_scripts", "name", "a\0b"),
    "half a letter": set_cell("lodger_scripts", "name", "\ud800"),
    "a name too long": set_cell("lodger_scripts", "name", "x" * 300),
    "a handler": set_cell("lodger_scripts", "kind", "host"),
    "two scripts of one name": set_cell("lodger_scripts", "name", "same", of=lambda row: row["kind"] == "script"),
    "an armed clock": set_cell("lodger_schedule_clock", "state", "armed"),
    "a clock of no revision": set_cell("lodger_schedule_clock", "revision", 77),
    "an action that runs": set_cell("lodger_actions", "state", "running", of=_is_waiting),
    "an action that is sealed": set_cell("lodger_actions", "state", "sealed", of=_is_waiting),
    "an action of no version": set_cell("lodger_actions", "script_version", 77, of=_is_waiting),
    "an action of no script": set_cell("lodger_actions", "script_id", "x", of=_is_waiting),
    "an action of no revision": set_cell(
        "lodger_actions", "revision", 77, of=lambda row: _is_waiting(row) and row["revision"]
    ),
    "an action under no id": set_cell("lodger_actions", "id", "[]", of=lambda row: row["state"] == "done"),
    "steps that are a number": set_cell("lodger_schedule_revisions", "steps", "9"),
    "people that are no list": lambda lines: lines[0]["row"].__setitem__(
        lines[0]["row"].index('["a@example.com"]'), "null"
    ),
    "steps that are none": set_cell("lodger_actions", "steps", "[1]", of=_is_waiting),
    "params that are no JSON": set_cell("lodger_actions", "params", "{", of=_is_waiting),
    "very deep params": set_cell("lodger_actions", "params", "[" * 100_000, of=_is_waiting),
    "files that are none": set_cell("lodger_script_versions", "modules", "[]"),
    "a file of a version that git takes for its own": set_cell(
        "lodger_script_versions", "modules", '{"main.js": "1", ".git/config": "1"}'
    ),
    "a script that git takes for its own": set_cell("lodger_scripts", "name", ".git", of=_is_ping),
    "fields that are none": set_cell("lodger_script_versions", "fields", "[1]"),
    "grants that there are not": set_cell("lodger_script_versions", "grants", '["everything"]'),
    "grants that are no list": set_cell("lodger_script_versions", "grants", "null"),
    "a policy that is none": set_cell("lodger_schedule_revisions", "overlap", "sometimes"),
    "limits beyond all": set_cell("lodger_schedule_revisions", "limits", '{"cpu_ms": -5}'),
    "limits of another kind": set_cell("lodger_schedule_revisions", "limits", "[1]"),
    "a retry of another kind": set_cell("lodger_schedule_revisions", "retry", "[1]"),
    "steps of another kind": set_cell("lodger_schedule_revisions", "steps", '[{"x": 1}]'),
    "a script whose newest version is not there": set_cell(
        "lodger_scripts", "version", 77, of=lambda row: row["kind"] == "script"
    ),
    "a script with a name that clears a terminal": set_cell("lodger_scripts", "name", "a\x1b[2Jb", of=_is_ping),
    "a version of a script of the platform's": _own_version_of_the_platforms,
    "steps of no script": set_cell("lodger_schedule_revisions", "steps", '[{"script_id":"x","limits":null}]'),
    "a revision of no script": set_cell("lodger_schedule_revisions", "script_id", STRANGE),
    "a schedule on every node": set_cell("lodger_schedule_revisions", "conduct", '{"placement":"every_node"}'),
    "params that are no number": set_cell("lodger_actions", "params", '{"a":NaN}', of=_is_waiting),
    "params just below what Python reads": set_cell("lodger_actions", "params", "[" * 600 + "]" * 600, of=_is_waiting),
    "a step before the first": set_cell("lodger_actions", "step", -5, of=_is_waiting),
    "a step behind the last": set_cell("lodger_actions", "step", 99, of=_is_waiting),
    "so many tries that one more is too many": set_cell("lodger_actions", "attempt", 2**31 - 1, of=_is_waiting),
    "so many faults that one more is too many": set_cell("lodger_actions", "tenant_faults", 2**15 - 1, of=_is_waiting),
    "a run of a schedule without a revision": set_cell("lodger_actions", "revision", None, of=_is_waiting),
    "a run of nobody's schedule": set_cell(
        "lodger_actions", "schedule_id", STRANGE, of=lambda row: row["state"] == "done"
    ),
    "an outcome that there is not": set_cell("lodger_actions", "outcome", "splendid"),
    "an error that is none": set_cell("lodger_attempts", "error", '{"x":1}'),
    "effects that are none": set_cell("lodger_attempts", "effects", "[1]"),
    "lines that are none": set_cell("lodger_attempt_logs", "lines", "[1]"),
    "a message of no kind": set_cell("lodger_outbox", "kind", "pigeon"),
    "a mail that is none": set_cell("lodger_outbox", "payload", "[]"),
    "a mail to nobody": set_cell("lodger_outbox", "payload", MAIL.replace('["a@example.com"]', "[]")),
    "a mail of numbers": set_cell("lodger_outbox", "payload", MAIL.replace('"s"', "1")),
    "a webhook with a user's name": set_cell("lodger_webhooks", "url", "https://user@example.com/"),
    "a secret for no host": set_cell("lodger_secrets", "hosts", '["a b"]'),
    "an index of no path": set_cell("lodger_collection_indexes", "path", "a'b"),
    "a document that is a list": set_cell("lodger_documents", "body", "[]"),
    "a number beyond a double": set_cell("lodger_document_index", "number", 10**400),
    "a number without an end": set_cell("lodger_document_index", "number", float("inf")),
    "an answer that unpacks to more than an answer": set_cell("lodger_fetches", "body", _packed(b"\0" * 3_000_000)),
    "an answer that is cut off": set_cell(
        "lodger_fetches", "body", {"b64": base64.b64encode(zlib.compress(b"abc")[:-2]).decode()}
    ),
    "an answer that is not packed": set_cell("lodger_fetches", "body", {"b64": "YWJj"}),
    "an answer that is none": set_cell("lodger_fetches", "answer", "[1]"),
    "is not base64": set_cell("lodger_script_versions", "wasm", {"b64": "???"}),
}


@pytest.fixture(scope="module")
def emptied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, bytes]]:
    """A ledger that the tenant has left, and its archive."""
    folder, clock = tmp_path_factory.mktemp("emptied"), VirtualClock()
    settings = Settings(
        sqlite_synchronous="NORMAL",
        concurrent_runs=100,
        min_interval_s=1,
        secret_keys=folder / "keys",
        egress_max_mib=2,
    )
    place = str(folder / "l.db")
    with Engine.open(place, clock=clock, settings=settings) as engine:
        furnish(Bench(engine, clock))
        engine.tenants.suspend("acme")
        archive = engine.tenants.export("acme")
        engine.tenants.delete("acme")
        yield engine, archive


def test_a_bent_archive_leaves_nothing_behind(emptied: tuple[Engine, bytes], subtests: pytest.Subtests) -> None:
    engine, archive = emptied
    for how, bend in BENT.items():
        with subtests.test(how):
            with pytest.raises((InputError, Conflict)) as refused:
                engine.tenants.restore("acme", altered(archive, bend))
            assert refused.value.code.startswith("archive_"), refused.value
            with pytest.raises(NotFound):
                engine.tenants.get("acme")
            assert not any(contents(engine).values())


def test_what_is_not_bent_comes_in_behind_all_that_was(emptied: tuple[Engine, bytes]) -> None:
    engine, archive = emptied
    assert engine.tenants.restore("acme", altered(archive, lambda _lines: None)).state == "suspended"
    engine.tenants.delete("acme")


@pytest.mark.parametrize("name", ["tenant_id"])
def test_rows_of_another_tenant_become_this_ones(bench: Bench, elsewhere: Bench, name: str) -> None:
    bench.tenant()
    elsewhere.tenant("victim")
    bench.engine.tenants.suspend("acme")
    forged = altered(bench.engine.tenants.export("acme"), set_cell("lodger_scripts", name, "victim"))
    elsewhere.engine.tenants.restore("acme", forged)
    assert [each.name for each in elsewhere.engine.scripts.list("acme")] == ["job"]
    assert [each.version for each in elsewhere.engine.scripts.versions("victim", "job")] == [1]


@pytest.mark.parametrize("walled", [True, False])
def test_a_schedule_that_says_it_is_another_tenants_costs_that_no_slot(
    bench: Bench, elsewhere: Bench, walled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unfinished actions of a schedule are found by its id alone: an archive could bring one with a known id."""
    if not walled:
        monkeypatch.setattr(TenantImport, "_check_owners", lambda _self: None)
    elsewhere.tenant("victim")
    theirs = elsewhere.schedule("every 60s", "victim", "theirs")
    bench.tenant()
    mine = bench.schedule("every 60s")
    bench.engine.tenants.suspend("acme")

    def renamed(lines: list[Any]) -> None:
        lines[:] = json.loads(json.dumps(lines).replace(mine.id, theirs.id))

    forged = altered(bench.engine.tenants.export("acme"), renamed)
    if walled:
        with pytest.raises(InputError) as refused:
            elsewhere.engine.tenants.restore("acme", forged)
        assert refused.value.why == "it has an id that belongs to another tenant"
    else:
        elsewhere.engine.tenants.restore("acme", forged)
        elsewhere.engine.tenants.resume("acme")
        elsewhere.engine.actions.run_now("acme", theirs.id)
    elsewhere.clock.us += 60_000_000
    elsewhere.tick()
    (slot,) = elsewhere.engine.actions.list("victim")
    assert slot.state == ("ready" if walled else "skipped")


def test_what_waits_has_no_id_of_anothers(bench: Bench, elsewhere: Bench) -> None:
    """A node knows what it runs by its id."""
    elsewhere.tenant("victim")
    theirs = elsewhere.engine.run_in("victim", "job", 3600)
    bench.tenant()
    mine = bench.engine.run_in("acme", "job", 3600)
    bench.engine.tenants.suspend("acme")
    forged = altered(bench.engine.tenants.export("acme"), set_cell("lodger_actions", "id", theirs.id))
    with pytest.raises(InputError) as refused:
        elsewhere.engine.tenants.restore("acme", forged)
    assert refused.value.why == "it has an id that belongs to another tenant"
    elsewhere.engine.tenants.restore("acme", altered(forged, set_cell("lodger_actions", "id", mine.id)))


@pytest.mark.parametrize("met", [True, False])
def test_what_comes_back_otherwise_is_not_what_a_node_remembers(
    bench: Bench, url: str, met: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant is deleted, and comes back of an older archive, which has other contents under the same numbers since."""
    if not met:
        monkeypatch.setattr(StoreContext, "check_generation", lambda *_: None)
    bench.tenant()
    bench.schedule("every 60s", params={"n": 1})
    bench.clock.us += 60_000_000
    bench.tick()
    (before,) = bench.claim()
    bench.commit(before)
    with Engine.open(url, clock=bench.clock, settings=bench.engine.context.settings) as other:
        other.tenants.suspend("acme")
        archive = other.tenants.export("acme")
        other.tenants.delete("acme")

        def changed(lines: list[Any]) -> None:
            lines[:] = json.loads(json.dumps(lines).replace("=> 1", "=> 2").replace('\\"n\\":1', '\\"n\\":2'))

        other.tenants.restore("acme", altered(archive, changed))
        other.tenants.resume("acme")
    bench.clock.us += 60_000_000
    bench.tick()
    (after,) = bench.claim()
    assert (before.modules["main.js"], before.params) == ("export default () => 1", {"n": 1})
    expected = ("export default () => 2", {"n": 2}) if met else (before.modules["main.js"], before.params)
    assert (after.modules["main.js"], after.params) == expected


def test_rows_take_no_more_memory_than_a_few_of_them(bench: Bench) -> None:
    """A line of nothing but brackets would be fifty times as large as it is long; large rows are written a few at a time."""
    line = b"[" + b"[]," * 1_000_000 + b"1]\n"
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            bench.engine.tenants.restore("acme", gzip.compress(line))
        text = "[" + "{}," * validation.CELL_VALUES + "1]"
        with pytest.raises(InputError):
            validation.parse_cell(actions, "params", text)
        assert tracemalloc.get_traced_memory()[1] < 5 * len(text)
    finally:
        tracemalloc.stop()
    assert [len(each) for each in in_chunks({"a": "x" * 3_000_000} for _ in range(5))] == [2, 2, 1]


SPOILT: tuple[Callable[[bytes], bytes], ...] = (
    lambda _archive: b"",
    lambda _archive: b"not gzip",
    lambda archive: archive[: len(archive) // 2],
    lambda archive: archive[:-9] + b"123456789",
    lambda archive: gzip.compress(gzip.decompress(archive).replace(b"export default", b"export defeat!")),
    lambda archive: gzip.compress(gzip.decompress(archive)[:-5]),
    lambda _archive: gzip.compress(b"[" * 1_000_000 + b"\n"),
    lambda _archive: gzip.compress(b"x" * (65 * 1024**2)),
)


def test_a_spoilt_file_is_known_for_one(emptied: tuple[Engine, bytes]) -> None:
    engine, archive = emptied
    for number, spoil in enumerate(SPOILT):
        with pytest.raises(InputError) as refused:
            engine.tenants.restore("acme", spoil(archive))
        assert refused.value.code == "archive_invalid", number
