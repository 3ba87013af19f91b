"""Unreported revisions, inserted by a platform's SQL: a trigger records them, and a node adopts them."""

from typing import Any

import pytest
from sqlalchemy import text
from tests.store.bench import Bench
from tests.store.test_adoption import copied, rules_of

from lodger.engine.core.errors import Conflict
from lodger.engine.store.schedules import adoption


@pytest.fixture
def made(bench: Bench) -> Any:
    bench.tenant()
    return bench.engine.schedules.create("acme", "s", script="job", rules="every 60s")


def insert(bench: Bench, schedule: str, was: str, now: str, number: int = 2, **changed: Any) -> None:
    """Run statements as a client of the database does."""
    with bench.engine.context.database.write() as connection:
        rules = rules_of(connection, schedule).replace(f"every {was}s", f"every {now}s")
        copied(connection, schedule, number, rules=rules, **changed)


def waiting(bench: Bench) -> list[tuple[str, str]]:
    with bench.engine.context.database.read() as connection:
        return adoption.list_unreported(connection)


def take(bench: Bench, schedule: str) -> Any:
    context, now_us = bench.engine.context, bench.clock.us
    with context.database.read() as connection:
        prepared = adoption.prepare(context, connection, "acme", schedule, now_us)
    with context.database.write() as connection:
        return adoption.adopt_candidate(context, connection, "acme", schedule, prepared, now_us)


def test_what_nobody_reports_waits_and_is_adopted_once(bench: Bench, made: Any) -> None:
    insert(bench, made.id, "60", "90", why="ticket 7")
    assert waiting(bench) == [("acme", made.id)]
    assert bench.engine.schedules.get("acme", "s").revision == 1, "until it is adopted the present one stands"
    assert take(bench, made.id) is None
    now = bench.engine.schedules.get("acme", "s")
    assert (now.revision, now.text, now.note) == (
        2,
        "Every 1 minute 30 seconds, counted from 1970-01-01T00:00:00Z",
        None,
    )
    assert waiting(bench) == []
    assert take(bench, made.id) is None, "another node finds nothing left to take"
    (row,) = bench.engine.audit.list("acme", verb="schedules.edit")
    assert (row.actor, row.via, row.why) == ("sql", "sql", "ticket 7")


def test_a_revision_inserted_after_the_look_is_adopted_at_the_next(bench: Bench, made: Any) -> None:
    insert(bench, made.id, "60", "90")
    context, now_us = bench.engine.context, bench.clock.us
    with context.database.read() as connection:
        prepared = adoption.prepare(context, connection, "acme", made.id, now_us)
    insert(bench, made.id, "60", "300", number=3)
    with context.database.write() as connection:
        assert adoption.adopt_candidate(context, connection, "acme", made.id, prepared, now_us) is None
    assert (bench.engine.schedules.get("acme", "s").revision, waiting(bench)) == (1, [("acme", made.id)])
    assert take(bench, made.id) is None
    assert bench.engine.schedules.get("acme", "s").text.startswith("Every 5 minutes")


def test_without_the_trigger_nobody_hears_of_it(bench: Bench, made: Any) -> None:
    on = "" if bench.engine.context.database.driver.name == "sqlite" else " ON lodger_schedule_revisions"
    with bench.engine.context.database.write() as connection:
        connection.execute(text(f"DROP TRIGGER lodger_schedule_revisions_foreign{on}"))
    insert(bench, made.id, "60", "90")
    assert waiting(bench) == []


def test_what_lodger_itself_stores_never_waits(bench: Bench, made: Any) -> None:
    schedules = bench.engine.schedules
    schedules.edit("acme", "s", rules="every 90s")
    schedules.edit("acme", "s", missed="all")
    schedules.rollback("acme", "s", 1)
    assert schedules.get("acme", "s").revision == 4
    assert waiting(bench) == []


def test_what_is_reported_waits_for_nobody(bench: Bench, made: Any) -> None:
    with bench.engine.context.database.write() as connection:
        copied(connection, made.id, 2, rules=rules_of(connection, made.id).replace("every 60s", "every 90s"))
        bench.engine.record_changed(connection, "acme", "schedules", "s")
    assert waiting(bench) == []
    assert (
        bench.engine.schedules.get("acme", "s").text == "Every 1 minute 30 seconds, counted from 1970-01-01T00:00:00Z"
    )


@pytest.mark.parametrize(
    "changed",
    [{"rules": "{"}, {"rules": "[1e999]"}, {"missed": "perhaps"}, {"conduct": '{"jitter_s": 1e999}'},
     {"steps": '[{"script_id": "job"}]'}, {"steps": '[{"script_id": "\\u0000"}]'}, {"steps": '[{"script_id": 5}]'}],
)  # fmt: skip
def test_what_cannot_be_is_taken_away_and_the_note_says_why(bench: Bench, made: Any, changed: Any) -> None:
    with bench.engine.context.database.write() as connection:
        copied(connection, made.id, 2, **changed)
    refused = take(bench, made.id)
    now = bench.engine.schedules.get("acme", "s")
    assert (now.revision, now.text, now.state) == (1, "Every 1 minute, counted from 1970-01-01T00:00:00Z", "armed")
    assert now.note == f"{adoption.REFUSED}{refused.code}: {refused}"
    assert waiting(bench) == []
    assert len(bench.engine.schedules.revisions("acme", "s")) == 1
    insert(bench, made.id, "60", "300")
    assert take(bench, made.id) is None
    assert bench.engine.schedules.get("acme", "s").note is None, "what is adopted leaves no complaint"


def test_an_edit_meanwhile_says_that_another_revision_waits(bench: Bench, made: Any) -> None:
    insert(bench, made.id, "60", "90")
    with pytest.raises(Conflict) as refused:
        bench.engine.schedules.edit("acme", "s", missed="all")
    assert refused.value.code == "revision_waiting"
    take(bench, made.id)
    assert bench.engine.schedules.edit("acme", "s", missed="all").revision == 3
    assert (
        bench.engine.schedules.get("acme", "s").text == "Every 1 minute 30 seconds, counted from 1970-01-01T00:00:00Z"
    ), "nothing of the two is lost"


def test_a_suspended_tenants_waits_until_it_goes_on(bench: Bench, made: Any) -> None:
    insert(bench, made.id, "60", "90")
    bench.engine.tenants.suspend("acme")
    assert waiting(bench) == []
    assert take(bench, made.id) is None
    bench.engine.tenants.resume("acme")
    assert waiting(bench) == [("acme", made.id)]
    take(bench, made.id)
    assert (
        bench.engine.schedules.get("acme", "s").text == "Every 1 minute 30 seconds, counted from 1970-01-01T00:00:00Z"
    )


def test_that_of_a_deleted_schedule_or_tenant_is_let_go(bench: Bench, made: Any) -> None:
    insert(bench, made.id, "60", "90")
    bench.engine.schedules.delete("acme", "s")
    assert take(bench, made.id).code == "schedule_unknown"
    assert waiting(bench) == []
    other = bench.schedule(name="t")
    insert(bench, other.id, "60", "90")
    bench.engine.tenants.suspend("acme")
    bench.engine.tenants.delete("acme")
    assert waiting(bench) == []


def test_whoever_inserts_needs_no_right_on_what_the_trigger_writes(bench: Bench, made: Any) -> None:
    database = bench.engine.context.database
    if database.driver.name == "sqlite":
        pytest.skip("SQLite has no roles")
    role = "platform_" + made.id.replace("-", "")[:12]
    with database.write() as connection:
        for each in (
            f"CREATE ROLE {role}",
            f"GRANT SELECT, INSERT ON lodger_schedule_revisions TO {role}",
        ):
            connection.execute(text(each))
    try:
        with database.write() as connection:
            rules = rules_of(connection, made.id).replace("every 60s", "every 90s")
            connection.execute(text(f"SET LOCAL ROLE {role}"))
            copied(connection, made.id, 2, rules=rules)
        assert waiting(bench) == [("acme", made.id)]
    finally:
        with database.write() as connection:
            connection.execute(text(f"DROP OWNED BY {role}"))
            connection.execute(text(f"DROP ROLE {role}"))
