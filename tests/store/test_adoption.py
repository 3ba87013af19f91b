"""Schedules edited by a platform's own SQL: the newest revision is checked, adopted, and the clock armed, or nothing of it happens."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.orm import Session
from tests.store.bench import Bench

from lodger.engine.core.access.audit_context import audit_as
from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import Conflict, InputError, NotFound

COLUMNS = ("missed", "overlap", "retry", "conduct", "steps", "limits", "params", "grants", "requires", "script_id", "anchor_us",
           "created_us", "sentence", "rules", "why")  # fmt: skip


def copied(connection: Connection, schedule: str, number: int, **changed: Any) -> None:
    """Insert a copy of the present revision as ``number``, with what is to be different."""
    bound = {f"new_{name}": value for name, value in changed.items()}
    shown = ", ".join(f":new_{name}" if name in changed else name for name in COLUMNS)
    connection.execute(
        text(
            f"INSERT INTO lodger_schedule_revisions (tenant_id, schedule_id, revision, {', '.join(COLUMNS)}) "
            f"SELECT tenant_id, schedule_id, :number, {shown} FROM lodger_schedule_revisions "
            "WHERE schedule_id = :schedule AND revision = 1"
        ),
        {"schedule": schedule, "number": number} | bound,
    )


def rules_of(connection: Connection, schedule: str) -> str:
    found = connection.scalar(
        text("SELECT rules FROM lodger_schedule_revisions WHERE schedule_id = :id AND revision = 1"), {"id": schedule}
    )
    return str(found)


@pytest.fixture
def made(bench: Bench) -> Any:
    bench.tenant()
    return bench.engine.schedules.create("acme", "s", script="job", rules="every 60s")


def test_what_sql_has_written_is_adopted_and_the_clock_armed(bench: Bench, made: Any) -> None:
    engine = bench.engine
    bench.clock.advance(130)
    with engine.context.database.write() as connection, audit_as("billing's migration"):
        wanted = rules_of(connection, made.id).replace("every 60s", "every 90s")
        copied(connection, made.id, 2, rules=wanted, params='{"a": 1}', missed="all", why="ticket 7")
        engine.record_changed(connection, "acme", "schedules", made.id)
    now = engine.schedules.get("acme", "s")
    assert (now.revision, now.params, now.missed) == (2, {"a": 1}, "all")
    assert now.text == "Every 1 minute 30 seconds, counted from 1970-01-01T00:00:00Z", (
        "the sentence is Lodger's, whatever SQL has copied"
    )
    assert now.next_at == from_us(bench.clock.us) + timedelta(seconds=50)
    slots = [action.slot for action in engine.actions.list("acme", made.id)]
    assert len(slots) == 2, "what the old revision owed is accounted"
    row = engine.audit.list("acme", verb="schedules.edit")[0]
    assert (row.actor, row.via, row.why) == ("billing's migration", "sql", "ticket 7")
    assert row.before["rules"]["rules"][0]["text"] == "every 60s"
    assert row.after["rules"]["rules"][0]["text"] == "every 90s"
    assert engine.schedules.diff("acme", "s", 1)


def test_by_a_session_by_name_and_several_at_once(bench: Bench, made: Any) -> None:
    engine = bench.engine
    other = engine.schedules.create("acme", "t", script="job", rules="every 60s")
    with Session(engine.context.database.engine) as session, session.begin():
        connection = session.connection()
        for each in (made, other):
            copied(connection, each.id, 5, rules=rules_of(connection, each.id).replace("every 60s", "every 300s"))
        engine.record_changed(session, "acme", "lodger_schedules", ["s", other.id])
    assert [engine.schedules.get("acme", name).text for name in "st"] == [
        "Every 5 minutes, counted from 1970-01-01T00:00:00Z"
    ] * 2
    assert engine.schedules.get("acme", "s").revision == 2, "numbers have no holes"
    assert len(engine.schedules.revisions("acme", "s")) == 2


Break = Callable[[str], dict[str, Any]]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (lambda rules: {"rules": rules.replace("every 60s", "every nonsense")}, "duration_invalid"),
        (lambda _rules: {"rules": "{"}, "revision_unreadable"),
        (lambda _rules: {"rules": "[]"}, "revision_unreadable"),
        (lambda _rules: {"conduct": '{"jitter_s": -1}'}, None),
        (lambda _rules: {"missed": "perhaps"}, None),
        (lambda _rules: {"overlap": "sometimes"}, None),
        (lambda rules: {"rules": rules.replace("every 60s", "every 0.1s")}, None),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_of_it_is_kept(
    bench: Bench, made: Any, changed: Break, code: str | None
) -> None:
    engine = bench.engine
    with pytest.raises(InputError) as refused, engine.context.database.write() as connection:
        _adopted(bench, connection, made.id, changed)
    assert code in {None, refused.value.code}
    now = engine.schedules.get("acme", "s")
    assert (now.revision, now.text, now.state) == (1, "Every 1 minute, counted from 1970-01-01T00:00:00Z", "armed")
    assert len(engine.schedules.revisions("acme", "s")) == 1


def _adopted(bench: Bench, connection: Connection, schedule: str, changed: Break) -> None:
    copied(connection, schedule, 2, **changed(rules_of(connection, schedule)))
    bench.engine.record_changed(connection, "acme", "schedules", schedule)


def test_nothing_new_foreign_and_suspended_ones_are_refused(bench: Bench, made: Any) -> None:
    engine = bench.engine
    engine.tenants.create("zeta")
    for tenant, key, kind in (("acme", "s", InputError), ("zeta", made.id, NotFound), ("acme", "nothing", NotFound)):
        with pytest.raises(kind), engine.context.database.write() as connection:
            engine.record_changed(connection, tenant, "schedules", key)
    engine.tenants.suspend("acme")
    with pytest.raises(Conflict), engine.context.database.write() as connection:
        _adopted(bench, connection, made.id, lambda _rules: {})
