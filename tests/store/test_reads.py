"""Scripts' questions to the ledger's file, from threads: bounded in time, and seeing what is committed."""

import asyncio
import json
import threading

import pytest
from sqlalchemy import text

from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.core.execution import Claim
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets import reads as reads_module
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.reads import ThreadReads
from lodger.engine.effects import commit
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.connection.database import Database

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"


async def test_a_question_without_end_is_given_up_and_the_connection_lives_on(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads_module, "STATEMENT_S", 0.05)
    monkeypatch.setattr(reads_module, "THREADS", 1)
    database = Database(url)
    reads = ThreadReads(database)

    try:
        with pytest.raises(CallRefused) as found:
            await reads(lambda connection: connection.execute(text(ENDLESS)).scalar())
        assert found.value.code == "too_slow"
        assert await reads(lambda connection: connection.execute(text("SELECT 7")).scalar()) == 7
    finally:
        reads.close()
        reads.close()
        database.close()


async def test_silent_connections_hold_no_other_reader_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads_module, "STATEMENT_S", 2.0)
    database, answered = Database(url), threading.Event()
    reads = ThreadReads(database)

    try:
        hung = [asyncio.create_task(reads(lambda _connection: answered.wait(60))) for _ in range(reads_module.THREADS)]
        async with asyncio.timeout(30):
            assert await reads(lambda connection: connection.execute(text("SELECT 7")).scalar()) == 7
        assert not any(each.done() for each in hung)
        answered.set()
        await asyncio.gather(*hung)
    finally:
        answered.set()
        reads.close()
        database.close()


async def test_calls_made_at_once_are_answered_in_their_order(url: str) -> None:
    database = Database(url)
    reads = ThreadReads(database)
    claim = Claim(
        action_id="018f0000-0000-7000-8000-000000000001", tenant_id="t", schedule_id=None, script_name="t", script_version=1,
        modules={}, attempt=1, step=0, lease_epoch=0, origin="run_now", slot_us=None, due_us=0, started_us=0,
    )  # fmt: skip

    try:
        attempt = Attempt(claim, reads, Datasets(), now_us=0, fetch_state=FetchState.of(claim))
        calls = [attempt.call("kv.add", json.dumps({"key": "n", "amount": 1})) for _ in range(20)]
        replies = await asyncio.gather(*(asyncio.create_task(call) for call in calls))
        assert [json.loads(reply.json) for reply in replies] == list(range(1, 21))
        with database.write() as connection:
            commit.apply(connection, attempt.journal, now_us=0)
        later = Attempt(claim, reads, Datasets(), now_us=0, fetch_state=FetchState.of(claim))
        assert json.loads((await later.call("kv.get", '{"key":"n"}')).json) == 20
    finally:
        reads.close()
        database.close()
