"""Rehearsals in real walls: a source that is only read, and a run that leaves nothing behind."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from tests.escape.commands import HELLO, LADDER_OF_IFS, command

from lodger.engine.core.errors import Conflict, InputError
from lodger.engine.core.settings import Settings
from lodger.engine.store.usage import usage
from lodger.engine.sync import Engine
from lodger.engine.trials.trial import try_script
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "ledger.db", settings=Settings(sqlite_synchronous="NORMAL")) as opened:
        opened.tenants.create("acme")
        yield opened


def test_modules_are_compiled_and_nothing_is_stored(engine: Engine) -> None:
    assert engine.scripts.check("acme", HELLO).ok
    wrong = engine.scripts.check("acme", b"\0asm nonsense")
    assert not wrong.ok
    assert wrong.problems[0].message
    with pytest.raises(InputError) as refused:
        engine.scripts.check("acme", "")
    assert refused.value.code == "script_empty"
    assert engine.scripts.list("acme") == []
    assert engine.audit.list("acme", verb="scripts.") == []


def used(engine: Engine) -> float:
    """Return the CPU seconds that the tenant has used."""
    return sum(day.cpu_s for day in engine.tenants.usage("acme").days)


def use_up(engine: Engine) -> None:
    """Let the tenant have used its second of the day."""
    with engine.context.database.write() as connection:
        usage.charge_trial(engine.context, connection, "acme", 1000 * (1 - used(engine)) + 1)


def test_cpu_time_of_dry_runs_and_checks_counts_towards_the_day(tmp_path: Path) -> None:
    """Each adds what it used; with nothing left neither runs, and a source is stored unchecked."""
    settings = Settings(sqlite_synchronous="NORMAL", check_scripts=True)
    with Engine.open(tmp_path / "ledger.db", settings=settings) as engine:
        engine.tenants.create("acme", limits={"cpu_s_per_day": 1})
        engine.scripts.check("acme", "export default () => 1")
        checked = used(engine)
        assert checked > 0
        ended = engine.scripts.dry_run("acme", "new", source="let n = 0; while (n < 1e6) n++; export default () => n")
        assert used(engine) == pytest.approx(checked + ended.usage.cpu_ms / 1000, abs=1e-3)
        use_up(engine)
        before = used(engine)
        for refused in (
            partial(engine.scripts.dry_run, "acme", "new", source="export default () => 1"),
            partial(engine.scripts.check, "acme", "export default () => 1"),
        ):
            with pytest.raises(Conflict) as found:
                refused()
            assert found.value.code == "budget_used_up"
        stored = engine.scripts.put("acme", "job", "export default () => 2")
        assert "CPU time" in (stored.unchecked or "")
        assert used(engine) == before
        budgets = {row.budget: row.used for row in engine.tenants.usage("acme").budgets}
        assert (budgets["cpu_s"], budgets["runs"]) == (before, 0)
        engine.tenants.edit("acme", limits={"cpu_s_per_day": None})
        assert engine.scripts.check("acme", "export default () => 1").ok


def test_cpu_time_of_compiling_a_module_counts_towards_the_day(tmp_path: Path) -> None:
    """A good module, one that is refused, none for cached code; with nothing left none is compiled."""
    settings = Settings(sqlite_synchronous="NORMAL", cache_dir=tmp_path / "cache")
    with Engine.open(tmp_path / "ledger.db", settings=settings) as engine:
        engine.tenants.create("acme", limits={"cpu_s_per_day": 1})
        engine.scripts.put("acme", "good", HELLO)
        good = used(engine)
        assert good > 0
        engine.scripts.put("acme", "again", HELLO)
        assert used(engine) == good
        with suppress(InputError):
            engine.scripts.put("acme", "costly", LADDER_OF_IFS)
        assert used(engine) > good
        use_up(engine)
        with pytest.raises(Conflict) as refused:
            engine.scripts.put("acme", "more", command("(call $say (i32.const 7))"))
        assert refused.value.code == "budget_used_up"


def test_a_handler_does_not_run_dry(engine: Engine) -> None:
    @engine.handler("rebuild")
    def rebuild() -> None:
        raise AssertionError("it ran")

    with pytest.raises(InputError) as refused:
        engine.scripts.dry_run("@platform", "rebuild")
    assert refused.value.code == "not_rehearsable"


def test_a_dry_run_is_held_to_what_a_run_is_held_to(engine: Engine) -> None:
    """A dry run is refused for typed params, budgets of the tenant and grants of the version as a run is."""
    echo = "export default ({ action }) => action.input"
    engine.scripts.put("acme", "typed", echo, params={"days": {"type": "integer", "max": 30, "default": 7}})
    assert engine.scripts.dry_run("acme", "typed", {}).result == {"days": 7}
    refused = engine.scripts.dry_run("acme", "typed", {"days": 31})
    assert (refused.outcome, refused.error is not None and refused.error.name) == (Outcome.BAD_REQUEST, "BadRequest")

    mail = "await mail.send({ to: 'kim@example.com', subject: 'n', text: 'n' });"
    mails = f"export default async ({{ mail }}) => {{ {mail} {mail} }}"
    engine.grants.give("acme", "mail:*")
    engine.scripts.put("acme", "mails", mails)
    assert engine.scripts.dry_run("acme", "mails").outcome is Outcome.OK
    engine.tenants.edit("acme", limits={"mails": 1})
    assert engine.scripts.dry_run("acme", "mails").outcome is Outcome.CALL_LIMIT

    engine.scripts.put("acme", "mails", mails, grants=["kv"])
    assert engine.scripts.dry_run("acme", "mails").outcome is Outcome.DENIED
    assert engine.scripts.dry_run("acme", "mails", source=mails + " // edited").outcome is Outcome.DENIED
    assert engine.scripts.dry_run("acme", "new", source="export default () => 1").result == 1


def test_a_dry_run_sees_the_limits_of_its_tenant_and_is_held_to_the_rest_of_the_day(engine: Engine) -> None:
    engine.scripts.put(
        "acme",
        "asks",
        "export default async ({ limits }) => { const { tenant, day } = await limits(); return [tenant, day] }",
    )
    tenant, day = engine.scripts.dry_run("acme", "asks").result
    assert tenant["storage_bytes"]["limit"] > tenant["storage_bytes"]["used"] > 0
    assert (day["events"]["limit"], day["events"]["used"]) == (10_000, 0)

    emits = "export default async ({ events }) => { await events.emit('a.b', 1); await events.emit('a.c', 2) }"
    engine.scripts.put("acme", "emits", emits)
    assert engine.scripts.dry_run("acme", "emits").outcome is Outcome.OK
    engine.tenants.edit("acme", limits={"events_per_day": 1})
    assert engine.scripts.dry_run("acme", "emits").outcome is Outcome.CALL_LIMIT
    asked = engine.scripts.dry_run("acme", "asks").result
    assert asked[1]["events"] == {"limit": 1, "used": 0, "left": 1}, "a dry run uses nothing of the day"


def test_an_expression_that_the_runtime_would_misread_is_refused(tmp_path: Path) -> None:
    """Without the flag v it is another expression, without an error: wherever a source comes in, it is not run."""
    source = {"main.ts": "const odd: RegExp = /^[a&&b]$/v;\nexport default () => odd.test('&');"}
    settings = Settings(sqlite_synchronous="NORMAL", check_scripts=False)
    with Engine.open(tmp_path / "ledger.db", settings=settings) as engine:
        engine.tenants.create("acme")
        for verb in (engine.scripts.put, lambda *given: engine.scripts.dry_run(*given[:2], source=given[2])):
            with pytest.raises(InputError) as refused:
                verb("acme", "odd", source)
            assert (refused.value.code, refused.value.details["line"]) == ("source_refused", 1)
        assert engine.scripts.put("acme", "odd", source, force=True).version == 1
    ran = try_script(source, None, Limits())
    assert (ran.finished.outcome, ran.finished.error.line if ran.finished.error else 0) == (Outcome.COMPILE_ERROR, 1)
