"""What a cancelled attempt leaves is written once, by the node that ran it, under the lease it ran under."""

from tests.store.bench import Bench

from lodger.engine.effects import cancelled_usage
from lodger.engine.effects.finished import Finished
from lodger.sandbox.job import LogLine, Usage
from lodger.sandbox.outcome import Outcome

LEFT = Finished(Outcome.CANCELLED, logs=(LogLine("info", "begun", 1),), usage=Usage(12.5, 40.0, 1 << 20, 3))


def test_nothing_is_written_for_what_is_anothers_or_was_said_before(bench: Bench) -> None:
    bench.tenant()
    asked = bench.engine.run_in("acme", "job", 0)
    (claim,) = bench.claim()
    bench.engine.actions.cancel(None, asked.id)

    def write(node: str = "n1") -> int:
        lease = bench.lease(node)
        with bench.engine.context.database.write() as connection:
            return len(cancelled_usage.write(bench.engine.context, connection, lease, [(claim, LEFT)], bench.clock.us))

    assert write("n2") == 0, "another node's"
    assert write() == 1
    assert write() == 0, "it has been said"
    (attempt,) = bench.engine.actions.attempts(None, asked.id)
    assert attempt.usage == LEFT.usage
    assert [line.text for line in attempt.logs] == ["begun"]
    assert bench.scalar("SELECT runs FROM lodger_usage_days") == 1
    assert bench.scalar("SELECT cpu_us FROM lodger_usage_days") == 12_500


def test_a_node_that_lost_its_lease_adds_nothing(bench: Bench) -> None:
    bench.tenant()
    asked = bench.engine.run_in("acme", "job", 0)
    (claim,) = bench.claim()
    bench.engine.actions.cancel(None, asked.id)
    with bench.engine.context.database.write() as connection:
        connection.exec_driver_sql("UPDATE lodger_nodes SET epoch = epoch + 1")
        assert (
            cancelled_usage.write(bench.engine.context, connection, bench.nodes["n1"], [(claim, LEFT)], bench.clock.us)
            == []
        )
    (attempt,) = bench.engine.actions.attempts(None, asked.id)
    assert attempt.usage.cpu_ms == 0
