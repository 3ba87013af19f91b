"""Alert rules on both databases: what raises, suppresses, closes and sends an alert, and that a crash loses and doubles none."""

import contextlib
import json
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from tests.cases import one_by_one
from tests.store.bench import OK, THROWN, Bench

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.effects.finished import Finished
from lodger.engine.features.alerts import evaluation
from lodger.engine.features.alerts.messages import Alert
from lodger.engine.features.alerts.tables import alert_queue
from lodger.engine.store.queue import events
from lodger.engine.store.schema.script_data import outbox
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

PAGER = "pager@acme.example"
ALL = ("failed", "recovered", "late", "missed", "overran", "slow", "budget", "silent")


@pytest.fixture
def acme(bench: Bench) -> Bench:
    bench.tenant(runs_per_day=5)
    bench.engine.grants.people("acme", [PAGER])
    return bench


def rule(bench: Bench, name: str = "all", **values: Any) -> None:
    bench.engine.alerts.put("acme", name, **({"kinds": ALL, "mail": [PAGER]} | values))


def evaluated(bench: Bench) -> list[str]:
    """Evaluate now; return the kinds of the raised alerts."""
    with bench.engine.context.database.write() as connection:
        return [each.kind for each in evaluation.apply(bench.engine.context, connection, bench.clock.us)]


def messages(bench: Bench) -> list[dict[str, Any]]:
    """Return the payloads in the outbox, oldest first."""
    with bench.engine.context.database.read() as connection:
        rows = connection.execute(sa.select(outbox).order_by(outbox.c.created_us, outbox.c.id)).all()
    return [json.loads(row.payload) | {"target": row.target} for row in rows]


def raised(bench: Bench) -> list[Alert]:
    return bench.engine.alerts.raised("acme")


def fail(bench: Bench) -> None:
    bench.clock.advance(60)
    bench.tick()
    bench.run(THROWN)


def succeed(bench: Bench) -> None:
    bench.clock.advance(60)
    bench.tick()
    bench.run(OK)


def test_a_failure_is_raised_once_until_a_run_succeeds(acme: Bench) -> None:
    acme.schedule(retry=1, name="nightly")
    rule(acme, kinds=("failed", "recovered"))
    fail(acme)
    assert evaluated(acme) == ["failed"]
    fail(acme)
    assert evaluated(acme) == []
    (alert,) = raised(acme)
    assert (alert.schedule, alert.occurrences, alert.closed_at) == ("nightly", 2, None)
    assert alert.details["error"] == "Error: no"
    succeed(acme)
    assert evaluated(acme) == ["recovered"]
    recovered, failed = raised(acme)
    assert failed.closed_at is not None
    assert recovered.details["after"] == ["failed"]
    fail(acme)
    assert evaluated(acme) == ["failed"]
    subjects = [each["subject"] for each in messages(acme)]
    assert subjects == [f"[Lodger] acme: schedule nightly {what}" for what in ("failed", "recovered", "failed")]
    assert messages(acme)[0]["to"] == [PAGER]


def test_an_end_after_the_success_of_the_same_round_keeps_the_alert_open(acme: Bench) -> None:
    acme.schedule(retry=1)
    rule(acme, kinds=("failed",))
    for turn in (fail, succeed, fail):
        turn(acme)
    assert evaluated(acme) == ["failed"]
    assert evaluated(acme) == []
    assert [each.closed_at for each in raised(acme)] == [None]


def test_a_rule_of_one_schedule_and_one_kind_hears_of_nothing_else(acme: Bench) -> None:
    acme.schedule(retry=1, name="one")
    acme.schedule(retry=1, name="two")
    rule(acme, "of-one", kinds=("failed",), schedule="one")
    rule(acme, "of-missed", kinds=("missed",))
    fail(acme)
    assert evaluated(acme) == ["failed"]
    assert [(each.rule, each.schedule) for each in raised(acme)] == [("of-one", "one")]


def test_without_a_rule_of_the_tenant_nothing_is_queued(acme: Bench) -> None:
    acme.engine.tenants.create("other")
    acme.engine.grants.people("other", [PAGER])
    acme.engine.alerts.put("other", "all", mail=[PAGER])
    acme.schedule(retry=1)
    fail(acme)
    succeed(acme)
    with acme.engine.context.database.read() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(alert_queue)) == 0


def test_slots_that_nobody_ticked_are_missed_and_those_skipped_by_overlap_overran(acme: Bench) -> None:
    acme.schedule(missed="skip", overlap="skip")
    rule(acme, kinds=("missed", "overran", "recovered"))
    acme.clock.advance(600)
    acme.tick()
    assert evaluated(acme) == ["missed"]
    (missed,) = raised(acme)
    assert missed.details["reason"] == "missed"
    acme.run()
    assert evaluated(acme) == ["recovered"]
    acme.clock.advance(60)
    acme.tick()
    (claim,) = acme.claim()
    acme.clock.advance(60)
    acme.tick()
    assert evaluated(acme) == ["overran"]
    acme.commit(claim)
    assert evaluated(acme) == ["recovered"], "the run that overran has ended"


def test_a_run_beyond_the_threshold_has_overrun_while_it_runs(acme: Bench) -> None:
    acme.schedule("every 3600s")
    rule(acme, kinds=("overran", "recovered"), overran_s=30)
    acme.clock.advance(3600)
    acme.tick()
    (claim,) = acme.claim()
    acme.clock.advance(29)
    assert evaluated(acme) == []
    acme.clock.advance(1)
    assert evaluated(acme) == ["overran"]
    acme.clock.advance(5)
    assert evaluated(acme) == []
    acme.commit(claim)
    assert evaluated(acme) == ["recovered"]


def test_what_is_due_and_has_not_started_is_late(acme: Bench) -> None:
    acme.schedule("every 3600s")
    rule(acme, kinds=("late", "recovered"), late_s=20)
    acme.clock.advance(3600)
    acme.tick()
    acme.clock.advance(19)
    assert evaluated(acme) == []
    acme.clock.advance(1)
    assert evaluated(acme) == ["late"]
    assert evaluated(acme) == []
    acme.run()
    assert evaluated(acme) == ["recovered"]


def test_a_lost_run_has_begun_and_is_not_late_while_it_waits_to_begin_anew(acme: Bench) -> None:
    rule(acme, kinds=("late",), late_s=60)
    acme.engine.run_in("acme", "job", 0)
    (claim,) = acme.claim()
    acme.commit(claim, finished=Finished(Outcome.WORKER_LOST, error=ScriptError("WorkerLost", "killed")))
    acme.clock.advance(70)
    assert evaluated(acme) == []
    acme.engine.run_in("acme", "job", 0)
    acme.clock.advance(70)
    assert evaluated(acme) == ["late"], "an action that never began is"


def test_a_schedule_without_success_after_its_slot_is_silent(acme: Bench) -> None:
    schedule = acme.schedule("every 3600s", name="report", retry=1)
    rule(acme, kinds=("silent", "recovered"), silent_s=120)
    acme.clock.advance(3600)
    acme.tick()
    acme.clock.advance(100)
    assert evaluated(acme) == []
    acme.clock.advance(30)
    assert evaluated(acme) == ["silent"]
    acme.run()
    assert evaluated(acme) == ["recovered"]
    acme.clock.advance(7200)
    # No node has ticked: the clock itself is overdue.
    assert evaluated(acme) == ["silent"]
    acme.engine.schedules.pause("acme", schedule.id)
    rule(acme, "again", kinds=("silent",), silent_s=1)
    assert evaluated(acme) == [], "a paused schedule is expected to be silent"


def test_a_schedule_is_silent_whatever_succeeds_elsewhere(acme: Bench) -> None:
    acme.schedule("every 3600s", name="report")
    rule(acme, kinds=("silent",), silent_s=120)
    acme.clock.advance(3600)
    acme.tick()
    acme.run(THROWN)
    acme.schedule("every 60s", tenant_id=acme.tenant("other"))
    acme.clock.advance(130)
    acme.tick()
    acme.run()
    assert evaluated(acme) == ["silent"]


def test_a_slow_down_and_a_nearly_spent_budget_are_raised_once(acme: Bench) -> None:
    acme.schedule()
    rule(acme, kinds=("slow", "budget"))
    for _ in range(3):
        succeed(acme)
    assert evaluated(acme) == []
    acme.clock.advance(60)
    acme.tick()
    (claim,) = acme.claim()
    acme.commit(claim)
    slowed = {"schedule": claim.schedule_id, "step": 0, "onset": "drift", "from_ms": 100.0, "to_ms": 9000.0}
    with acme.engine.context.database.write() as connection:
        events.enqueue(connection, "acme", "lodger.schedule.slowed", slowed, (claim.action_id, 0, -1), acme.clock.us)
    assert sorted(evaluated(acme)) == ["budget", "slow"]
    assert evaluated(acme) == []
    slow = next(each for each in raised(acme) if each.kind == "slow")
    assert (slow.details["onset"], slow.details["to_ms"]) == ("drift", 9000.0)
    budget = next(each for each in raised(acme) if each.kind == "budget")
    assert budget.details == {"budget": "runs", "limit": 5, "used": 4}
    acme.clock.advance(86_400)
    assert evaluated(acme) == []
    assert {each.kind: each.closed_at is None for each in raised(acme)} == {"slow": False, "budget": False}


def test_quiet_hours_end_with_one_digest(acme: Bench) -> None:
    acme.schedule("every 3600s", retry=1, name="nightly")
    now = from_us(acme.clock.us)
    opens = (now + timedelta(hours=3)).strftime("%H:%M")
    rule(acme, kinds=("failed", "recovered"), quiet=[f"{now.strftime('%H:%M')}-{opens}"])
    acme.clock.advance(3600)
    fail(acme)
    evaluated(acme)
    acme.clock.advance(3600)
    succeed(acme)
    evaluated(acme)
    assert messages(acme) == []
    assert [each.sent_at for each in raised(acme)] == [None, None]
    acme.clock.advance(3600)
    evaluated(acme)
    (digest,) = messages(acme)
    assert digest["subject"] == "[Lodger] acme: 2 alerts"
    assert digest["text"].index("failed: ") < digest["text"].index("recovered: ")
    assert evaluated(acme) == []
    assert len(messages(acme)) == 1


def test_a_crash_before_the_commit_loses_and_doubles_nothing(acme: Bench) -> None:
    acme.schedule(retry=1)
    rule(acme)
    fail(acme)
    with contextlib.suppress(KeyboardInterrupt), acme.engine.context.database.write() as connection:
        assert evaluation.apply(acme.engine.context, connection, acme.clock.us)
        raise KeyboardInterrupt
    assert (raised(acme), messages(acme)) == ([], [])
    assert evaluated(acme) == ["failed"]
    assert evaluated(acme) == []
    assert len(messages(acme)) == 1


def test_a_test_message_goes_to_every_receiver_even_in_quiet_hours(acme: Bench) -> None:
    rule(acme, quiet=["mon-sat 00:00-24:00", "sun 00:00-23:59"])
    assert acme.engine.alerts.test("acme", "all") == 1
    assert "test of alert rule all" in messages(acme)[0]["subject"]


def test_old_alerts_are_deleted_with_their_messages_and_a_deleted_rule_with_its_alerts(acme: Bench) -> None:
    acme.schedule(retry=1)
    rule(acme, kinds=("failed",))
    fail(acme)
    evaluated(acme)
    with acme.engine.context.database.write() as connection:
        evaluation.purge(connection, acme.clock.us)
    assert (len(raised(acme)), len(messages(acme))) == (1, 1)
    acme.clock.advance(31 * 86_400)
    with acme.engine.context.database.write() as connection:
        evaluation.purge(connection, acme.clock.us)
    assert (len(raised(acme)), evaluated(acme)) == (1, []), "an open alert is kept, and not raised again"
    acme.tick()
    acme.run(OK)
    evaluated(acme)
    acme.clock.advance(31 * 86_400)
    with acme.engine.context.database.write() as connection:
        evaluation.purge(connection, acme.clock.us)
    assert (raised(acme), messages(acme)) == ([], [])
    acme.engine.schedules.delete("acme", "s")
    acme.engine.actions.run_in("acme", "job", 0)
    acme.run(THROWN)
    evaluated(acme)
    assert [each.closed_at is None for each in raised(acme)] == [False], "without a schedule no later success closes it"
    acme.engine.alerts.delete("acme", "all")
    assert raised(acme) == []


def test_a_deleted_schedule_closes_its_alerts_without_a_recovery(acme: Bench) -> None:
    schedule = acme.schedule(retry=1)
    rule(acme, kinds=("failed", "recovered"))
    fail(acme)
    evaluated(acme)
    acme.engine.schedules.delete("acme", schedule.id)
    assert evaluated(acme) == []
    assert [each.closed_at is None for each in raised(acme)] == [False]


def test_a_suspended_tenant_is_not_evaluated_and_its_failures_wait(acme: Bench) -> None:
    acme.schedule(retry=1)
    rule(acme, kinds=("failed", "late"), late_s=1)
    fail(acme)
    acme.engine.actions.run_in("acme", "job", 0)
    acme.engine.tenants.suspend("acme")
    acme.clock.advance(60)
    assert evaluated(acme) == []
    acme.engine.tenants.resume("acme")
    assert sorted(evaluated(acme)) == ["failed", "late"]


@one_by_one(
    ("values", "code"),
    [
        ({"kinds": ["broken"]}, "alert_kind_unknown"),
        ({"kinds": []}, "alert_kind_unknown"),
        ({"mail": []}, "alert_receiver_missing"),
        ({"mail": ["someone@else.example"]}, "alert_address_denied"),
        ({"mail": ["a b@acme.example"]}, "alert_address_denied"),
        ({"quiet": ["25:00-07:00"]}, "quiet_hours_invalid"),
        ({"quiet": ["00:00-24:00"]}, "quiet_hours_invalid"),
        ({"quiet": ["mon-sat 07:00-05:00", "sun 07:00-05:01", "05:00-07:00"]}, "quiet_hours_invalid"),
        ({"tz": "Mars/Base"}, "zone_unknown"),
        ({"late_s": 0}, "alert_threshold_invalid"),
        ({"kinds": ("failed",), "late_s": 5}, "alert_threshold_invalid"),
        ({"kinds": ("late",), "silent_s": 30}, "alert_threshold_invalid"),
        ({"kinds": ("slow",), "overran_s": 9}, "alert_threshold_invalid"),
        ({"webhooks": ["none"]}, "webhook_unknown"),
        ({"schedule": "none"}, "schedule_unknown"),
        ({"name": "a b"}, "alert_name_invalid"),
    ],
)  # fmt: skip
def test_a_rule_that_could_not_work_is_refused(acme: Bench, values: dict[str, Any], code: str) -> None:
    with pytest.raises((InputError, NotFound)) as refused:
        rule(acme, **values)
    assert refused.value.code == code
    assert acme.engine.alerts.list("acme") == []


def test_a_rule_is_replaced_as_a_whole(acme: Bench) -> None:
    rule(acme, kinds=("failed", "late"), late_s=5)
    rule(acme, kinds=("failed",))
    (found,) = acme.engine.alerts.list("acme")
    assert (found.kinds, found.late_s, found.mail) == (("failed",), 60, (PAGER,))
    assert acme.engine.alerts.get("acme", "all") == found
