"""The chaos' reading of bills sees what is wrong: each tampering is told, and a ledger that was left alone is not."""

import pytest
from tests.chaos import exposed_lamps
from tests.chaos.comparison import Comparison, compare_bills
from tests.store.bench import Bench
from tests.store.spending import Spender, try_call

from lodger.engine.node.executors.attempt import Attempt
from lodger.sandbox.outcome import Outcome

TAMPERINGS = {
    "runs": "UPDATE lodger_usage_days SET runs = runs + 1",
    "queries": "UPDATE lodger_usage_days SET queries = queries - 1",
    "rows_written": "UPDATE lodger_usage_days SET rows_written = 0",
    "stored bytes": "UPDATE lodger_storage SET history_bytes = history_bytes + 1",
    "shares": "INSERT INTO lodger_lots (tenant_id, action_id, attempt, budget, day, amount) "
    "SELECT tenant_id, id, 1, 'queries', 1, 5 FROM lodger_actions LIMIT 1",
}


def test_what_is_wrong_is_seen(bench: Bench) -> None:
    database = bench.engine.context.database
    if database.engine.dialect.name == "sqlite":
        pytest.skip("the chaos is PostgreSQL's, and so are the words of its reckoning")
    exposed_lamps.traces.metadata.create_all(database.engine)
    exposed_lamps.expose(bench.engine)
    spender = Spender(bench)
    spender.tenant(queries_per_day=1000)

    async def counts(attempt: Attempt) -> None:
        await try_call(attempt, "kv.add", key="n", amount=1)
        made = {"action": attempt.claim.action_id, "mark": "counts"}
        assert isinstance(await try_call(attempt, "db.insert", set="traces", values=made), dict)

    for outcome in (Outcome.OK, Outcome.OK):
        (claim,) = spender.asked()
        spender.through(claim, counts, outcome)

    for what, tampering in {"": "SELECT 1", **TAMPERINGS}.items():
        found = Comparison()
        with database.engine.connect() as connection:
            connection.exec_driver_sql(tampering)
            compare_bills(connection, found)
            connection.rollback()
        reported = found.lost + found.doubled
        assert len(reported) == bool(what)
        assert what in "".join(reported)
