"""What runs, what is overdue and why, nodes by their heartbeats, and the numbers made of it."""

import threading
from typing import Any

import pytest
from sqlalchemy import text
from tests.e2e.command import inside
from tests.store.bench import Bench

from lodger.engine.cli.readiness import nodes
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.metrics import METRICS, ProcessMetrics, prometheus_text
from lodger.engine.effects.finished import Finished
from lodger.engine.store.connection import lock_waits
from lodger.engine.store.platform import node_rows
from lodger.sandbox.job import Usage
from lodger.sandbox.outcome import Outcome


def _lasted(ms: float) -> Finished:
    return Finished(Outcome.OK, result="1", usage=Usage(1.0, ms))


def _history(bench: Bench, walls: list[float]) -> None:
    """Let a run of each of these wall times succeed."""
    for wall in walls:
        bench.clock.advance(60)
        bench.renew()
        bench.tick()
        bench.run(_lasted(wall))


def test_what_runs_is_shown_with_what_it_used_to_take(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule()
    bench.lease()
    _history(bench, [2000.0] * 6)
    bench.clock.advance(60)
    bench.tick()
    (claim,) = bench.claim()
    (now,) = bench.engine.actions.running("acme")
    assert (now.action_id, now.schedule, now.script, now.node, now.slow) == (claim.action_id, "s", "job", "n1", False)
    assert (now.pace.runs, now.pace.median_ms) == (6, 2000.0)
    bench.clock.advance(3.1)
    (now,) = bench.engine.actions.running()
    assert (now.elapsed_ms, now.slow) == (3100.0, True)
    (same,) = bench.engine.actions.compared(None, claim.action_id)
    assert (same.took_ms, same.times, same.slow) == (3100.0, 1.55, True)
    bench.commit(claim, finished=_lasted(2500.0))
    assert bench.engine.actions.running() == []
    (ended,) = bench.engine.actions.compared(None, claim.action_id)
    assert (ended.times, ended.slow, ended.pace.runs) == (1.25, False, 6), "a run is not compared with itself"
    assert schedule.id == now.schedule_id
    _history(bench, [9000.0] * 8)
    assert bench.engine.actions.compared(None, claim.action_id) == [ended], "a run is compared with earlier ones only"


@pytest.mark.parametrize(
    ("why", "prepare"),
    [
        ("unticked", lambda bench: None),
        ("slots", lambda bench: bench.tick()),
        ("no_node", lambda bench: (bench.engine.tenants.edit("acme", labels="gpu"), bench.tick())),
        ("predecessor", lambda bench: (bench.tick(), bench.claim(), bench.clock.advance(60), bench.tick())),
        ("concurrent_runs", lambda bench: (bench.engine.run_in("acme", "job", 0), bench.claim(), bench.tick())),
        ("node_memory", lambda bench: (bench.tick(), bench.scalar("SELECT 1"), _set_reasons(bench, "node_memory"))),
        ("paused", lambda bench: (bench.clock.advance(-60), bench.engine.schedules.pause("acme", "s"), bench.clock.advance(60))),
        ("tenant_suspended", lambda bench: (bench.tick(), bench.engine.tenants.suspend("acme"))),
        ("budget", lambda bench: (bench.engine.tenants.edit("acme", limits={"runs_per_day": 0}), bench.tick(), _waits(bench))),
    ],
)  # fmt: skip
def test_what_is_overdue_says_why(bench: Bench, why: str, prepare) -> None:  # type: ignore[no-untyped-def]  # a lambda
    bench.tenant(concurrent_runs=1)
    bench.schedule(overlap="queue_all")
    bench.lease()
    bench.clock.advance(60)
    prepare(bench)
    bench.clock.advance(3)
    bench.renew()
    assert bench.engine.actions.overdue(grace_s=4) == [] or why == "predecessor"
    bench.clock.advance(2)
    late = bench.engine.actions.overdue("acme", grace_s=4)
    assert why in {each.why for each in late}
    assert all(each.waits_ms >= 5000 and each.schedule == "s" for each in late)


def test_what_a_lost_lease_leaves_is_overdue_until_another_node_takes_it(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    bench.lease()
    bench.clock.advance(60)
    bench.renew()
    bench.tick()
    bench.claim()
    assert bench.engine.actions.overdue() == []
    bench.clock.advance(30)
    (late,) = bench.engine.actions.overdue("acme")
    assert (late.why, late.detail, late.schedule) == ("lease_lost", "n1", "s")
    bench.lease("n2")
    bench.rescue()
    assert "lease_lost" not in {each.why for each in bench.engine.actions.overdue()}


def test_however_many_wait_on_purpose_the_others_come_first(bench: Bench) -> None:
    for tenant in ("acme", "stopped"):
        bench.tenant(tenant)
        bench.schedule(tenant_id=tenant, overlap="queue_all")
    bench.engine.scripts.put("acme", "halted", "export default () => 1")
    bench.lease()
    bench.clock.advance(180)
    bench.renew()
    for _ in range(3):
        bench.engine.run_in("acme", "halted", 0)
        bench.tick()
        bench.clock.advance(60)
    bench.engine.tenants.suspend("stopped")
    bench.engine.scripts.suspend("acme", "halted")
    bench.engine.schedules.pause("acme", "s")
    bench.engine.run_in("acme", "job", 0)
    bench.clock.advance(60)
    bench.renew()
    reasons = [each.why for each in bench.engine.actions.overdue(grace_s=1)]
    free = [each for each in reasons if each in {"slots", "predecessor"}]
    assert "slots" in free
    assert reasons[: len(free)] == free
    assert {"tenant_suspended", "script_suspended"} <= set(reasons[len(free) :])
    assert [each.why for each in bench.engine.actions.overdue(grace_s=1, limit=len(free))] == free
    assert "predecessor" not in {each.why for each in bench.engine.actions.overdue("stopped", grace_s=1)}


def _waits(bench: Bench) -> None:
    """Make the slots that the budget skipped wait, as they do while running attempts may use up the rest of it."""
    with bench.engine.context.database.write() as connection:
        connection.execute(
            text("UPDATE lodger_actions SET state = 'ready', reason = NULL, finished_us = NULL, slot_to = NULL")
        )


def _set_reasons(bench: Bench, why: str) -> None:
    with bench.engine.context.database.write() as connection:
        connection.execute(text("UPDATE lodger_actions SET reason = :why"), {"why": why})


def test_nodes_are_listed_by_their_heartbeats_and_forgotten_in_the_end(bench: Bench) -> None:
    bench.tenant()
    bench.lease("a")
    bench.lease("b")
    bench.engine.run_in("acme", "job", 0)
    bench.claim(node="a")
    bench.clock.advance(2)
    bench.renew("a")
    one, two = bench.engine.nodes.list()
    assert (one.name, one.state, one.running, one.silent_s, one.labels) == ("a", "alive", 1, 0.0, ("node:a",))
    assert (two.name, two.state, two.running, two.silent_s) == ("b", "alive", 0, 2.0)
    bench.clock.advance(5)
    assert [node.state for node in bench.engine.nodes.list()] == ["alive", "silent"]
    bench.rescue()
    assert [node.name for node in bench.engine.nodes.list()] == ["a"]
    assert [node.state for node in bench.engine.nodes.list(gone=True)] == ["alive", "lost"]
    with bench.engine.context.database.write() as connection:
        assert node_rows.delete_stopped(bench.engine.context, connection, bench.clock.us) == 0
        assert (
            node_rows.delete_stopped(bench.engine.context, connection, bench.clock.us + node_rows.KEPT_US + 10_000_000)
            == 1
        )


def test_the_ledgers_numbers_are_what_stands_in_it(bench: Bench) -> None:
    bench.tenant(concurrent_runs=1)
    bench.schedule()
    bench.engine.run_in("acme", "job", 0)
    bench.engine.run_in("acme", "job", 0)
    bench.claim()
    found = {
        (sample.name, sample.labels): sample.value for each in bench.engine.metrics.read() for sample in each.samples
    }
    assert found["lodger_actions", (("state", "startable"),)] == 1
    assert found["lodger_actions", (("state", "running"),)] == 1
    assert found["lodger_nodes", (("state", "alive"),)] == 1
    assert found["lodger_overdue", ()] == 0
    bench.clock.advance(90)
    found = {sample.name: sample.value for each in bench.engine.metrics.read() for sample in each.samples}
    assert (found["lodger_overdue"], found["lodger_overdue_seconds"]) == (1, 30)


def test_every_meter_of_the_table_is_given_and_written_as_prometheus_reads_it(bench: Bench) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    bench.engine.process_metrics.count("lodger_attempts_total", "ok", by=3)
    bench.engine.process_metrics.observe("lodger_lateness_seconds", [0.002, 0.03, 400])
    bench.engine.process_metrics.count("lodger_faults_total", 'a "b"\n\\')
    assert [each.name for each in bench.engine.metrics.read()] == [spec.name for spec in METRICS]
    families = {each.name: each for each in text_string_to_metric_families(bench.engine.metrics.text())}
    own = {name for name in families if not name.startswith("process_")}
    assert own == {spec.name.removesuffix("_total") for spec in METRICS}
    assert "process_cpu_seconds" in families
    values = {(s.name, tuple(sorted(s.labels.items()))): s.value for f in families.values() for s in f.samples}
    assert values["lodger_attempts_total", (("outcome", "ok"),)] == 3
    assert values["lodger_faults_total", (("service", 'a "b"\n\\'),)] == 1
    assert values["lodger_lateness_seconds_count", ()] == 3
    assert values["lodger_lateness_seconds_bucket", (("le", "0.0025"),)] == 1
    assert values["lodger_lateness_seconds_bucket", (("le", "+Inf"),)] == 3
    assert values["lodger_lateness_seconds_sum", ()] == pytest.approx(400.032)


def test_the_walls_of_a_node_are_listed(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.lease(name)
    process_metrics = ProcessMetrics()
    process_metrics.put("lodger_wall_active", 1.0, "seccomp")
    process_metrics.put("lodger_wall_active", 0.0, "landlock")
    _publish(bench, process_metrics, "a")
    assert [each.walls for each in bench.engine.nodes.list()] == [{"landlock": False, "seccomp": True}, None]


def test_the_saturation_of_a_node_is_listed_and_doctor_warns(bench: Bench) -> None:
    for name, saturation in (("a", 0.9), ("b", 0.1)):
        bench.lease(name)
        process_metrics = ProcessMetrics()
        process_metrics.put("lodger_node_saturation", saturation)
        _publish(bench, process_metrics, name)
    bench.lease("c")
    listed = bench.engine.nodes.list()
    assert [each.saturation for each in listed] == [0.9, 0.1, None]
    found = nodes(bench.engine)
    assert (found.state, found.value) == ("warn", "3, saturated: a 90%")
    bench.clock.advance(61)
    assert {each.saturation for each in bench.engine.nodes.list(gone=True)} == {None}, "a minute is long ago"


def _publish(bench: Bench, process_metrics: ProcessMetrics, name: str) -> None:
    with bench.engine.context.database.write() as connection:
        node_rows.publish_metrics(
            bench.engine.context,
            connection,
            process_metrics.process,
            name,
            prometheus_text(process_metrics.read()),
            bench.clock.us,
        )


def test_a_chain_of_locks_is_seen_with_who_holds_up_everybody(bench: Bench) -> None:
    database = bench.engine.context.database
    if database.driver.name == "sqlite":
        assert bench.engine.metrics.blocked() == []
        return
    for tenant in ("a", "b"):
        bench.tenant(tenant)

    def wait(first: str, second: str) -> None:
        with database.write() as connection:
            connection.execute(_LOCK, {"tenant": first})
            connection.execute(_LOCK, {"tenant": second})

    with database.write() as holder:
        holder.execute(_LOCK, {"tenant": "a"})
        holder_pid = holder.scalar(text("SELECT pg_backend_pid()"))
        one = threading.Thread(target=wait, args=("b", "a"))
        one.start()
        _wait_for_locks(bench, 1)
        two = threading.Thread(target=wait, args=("b", "b"))
        two.start()
        _wait_for_locks(bench, 2)
        with database.read() as connection:
            assert lock_waits.chains(connection, min_s=1000) == []
            chains = lock_waits.chains(connection, min_s=0)
    one.join()
    two.join()
    longest, other = chains
    assert [session.pid for session in longest.blockers] == [holder_pid]
    assert [session.pid for session in other.blockers] == [longest.waits.pid, holder_pid]
    assert longest.waited_s >= other.waited_s >= 0
    assert "FOR UPDATE" in longest.waits.query
    with database.read() as connection:
        assert lock_waits.chains(connection, min_s=0) == []


def test_the_doctor_tells_who_holds_up_whom(bench: Bench, url: str) -> None:
    database = bench.engine.context.database
    assert [each["state"] for each in _checks(url) if each["name"] in {"schema", "locks"}] == ["ok", "ok"]
    if database.driver.name == "sqlite":
        return
    bench.tenant("a")

    def wait() -> None:
        with database.write() as connection:
            connection.execute(_LOCK, {"tenant": "a"})

    with database.write() as holder:
        holder.execute(_LOCK, {"tenant": "a"})
        pid = holder.scalar(text("SELECT pg_backend_pid()"))
        waiter = threading.Thread(target=wait)
        waiter.start()
        _wait_for_locks(bench, 1, min_s=lock_waits.MIN_S)
        (locks,) = [each for each in _checks(url) if each["name"] == "locks"]
    waiter.join()
    assert locks["state"] == "warn"
    assert "FOR UPDATE; blocked by session " + str(pid) in locks["why"]
    assert f"pg_terminate_backend({pid})" in locks["fix"]


def _checks(place: str) -> list[dict[str, Any]]:
    """Return the checks of the doctor about a ledger."""
    found: list[dict[str, Any]] = inside("doctor", "--probe", "--db", place, "--json").json["checks"]
    return found


_LOCK = text("SELECT 1 FROM lodger_turns WHERE tenant_id = :tenant AND requires = '' FOR UPDATE")


def _wait_for_locks(bench: Bench, number: int, min_s: float = 0) -> None:
    """Wait until so many sessions wait for locks."""
    clock = SystemClock()
    end = clock.elapsed_s() + 120
    while True:
        with bench.engine.context.database.read() as connection:
            if len(lock_waits.chains(connection, min_s=min_s)) >= number:
                return
        assert clock.elapsed_s() < end
