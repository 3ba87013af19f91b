"""A run that the machine took away has begun: it is not reported as late while it waits to begin anew."""

from tests.store.bench import Bench
from tests.store.conftest import bench

from lodger.engine.effects.finished import Finished
from lodger.engine.features.alerts import evaluation
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

__all__ = ["bench"]
LOST = Finished(Outcome.WORKER_LOST, error=ScriptError("WorkerLost", "killed"))


def test_a_lost_run_is_not_late(bench: Bench) -> None:
    bench.tenant()
    bench.engine.grants.people("acme", ["a@acme.example"])
    bench.engine.alerts.put("acme", "late", mail=["a@acme.example"], kinds=["late"], late_s=60)
    bench.engine.run_in("acme", "job", 0)
    (claim,) = bench.claim()
    bench.commit(claim, finished=LOST)
    bench.clock.advance(70)
    with bench.engine.context.database.read() as connection:
        assert not evaluation.find(bench.engine.context, connection, now_us=bench.clock.us)
    bench.engine.run_in("acme", "job", 0)
    bench.clock.advance(70)
    with bench.engine.context.database.read() as connection:
        assert evaluation.find(bench.engine.context, connection, now_us=bench.clock.us), "an action that never began is"
