"""How many statements a batch of a hundred actions costs: a fixed number, however many rows, on each database."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event
from tests.store.bench import Bench

#: Actions of a batch, and the tenants that they belong to.
ACTIONS, TENANTS = 100, 10


def counted(bench: Bench, work: Callable[[], object]) -> list[str]:
    """Return the statements that some work sends, without what begins its transaction."""
    database, sent = bench.engine.books.database, []

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if not statement.startswith(("BEGIN", "SET LOCAL")):
            sent.append(" ".join(statement.split())[:110])

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    return sent


def fill(bench: Bench, actions: int = ACTIONS) -> None:
    for number in range(TENANTS):
        tenant = bench.tenant(f"t{number}", concurrent_runs=100)
        for each in range(actions // TENANTS):
            bench.schedule(tenant_id=tenant, name=f"s{each}")


def test_x(bench: Bench, kind: str) -> None:
    fill(bench)
    bench.lease()
    for turn in range(2):
        bench.clock.advance(60)
        ticked = counted(bench, bench.tick)
        claimed: list[Any] = []
        claiming = counted(bench, lambda: claimed.extend(bench.claim(ACTIONS)))
        assert len(claimed) == ACTIONS
        finished = counted(bench, lambda: bench.commit(*claimed))
        print(kind, turn, len(ticked), len(claiming), len(finished))
        for name, list_ in (("tick", ticked), ("claim", claiming), ("finish", finished)):
            print(name, *list_, sep="\n   ")
