"""Budgets of a day under real runs: many of one tenant's at once, on two nodes of one ledger, behind real walls."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.databases.fixtures import kind, url
from tests.egress.peer import Peer, answer, held_answer, opened, thread_of_peers

from lodger.engine import Engine
from lodger.engine.core.events import Event

__all__ = ["kind", "url"]

RUNS = 12
FETCHES, MAILS = 20, 9
SCRIPT = """
export default async ({ kv, mail }) => {
  const ask = (n) => fetch("@@/" + n).then(() => 1, (error) => error.details.budget + " " + error.details.per);
  const said = await Promise.all([1, 2, 3].map(ask));
  await kv.add("runs", 1);
  for (const name of ["a", "b"]) await mail.send({ to: name + "@x.example", subject: "s", text: "t" });
  return said;
};
"""


@pytest.fixture
def both() -> threading.Event:
    """Set when both nodes have a run."""
    return threading.Event()


@pytest.fixture
def peer(both: threading.Event) -> Iterator[Peer]:
    """A server that answers once both nodes have a run: until then the requests of one fill its slots."""
    made = Peer(paths={f"/{number}": held_answer(answer(b"x" * 100), both) for number in (1, 2, 3)})
    with thread_of_peers(made):
        yield made


async def test_on_two_nodes_no_budget_is_passed_and_nothing_is_counted_twice(
    url: str, peer: Peer, both: threading.Event
) -> None:
    settings = opened(peer, slots=3, sqlite_synchronous="NORMAL", poll_s=0.05, egress_per_s=1000)
    async with Engine.open(url, settings=settings) as one, Engine.open(url, settings=settings) as two:
        limits = {"concurrent_runs": RUNS, "fetches_per_day": FETCHES, "mails_per_day": MAILS, "wall_ms": 60_000}
        granted = [f"fetch:http://127.0.0.1:{peer.port}", "mail:*", "kv"]
        await one.tenants.create("acme", limits=limits, grants=granted)
        await one.scripts.put("acme", "s", SCRIPT.replace("@@", peer.url("")))
        ended: dict[str, str] = {}
        nodes: set[str] = set()
        warned: list[tuple[str, str]] = []
        all_ended, loop = asyncio.Event(), asyncio.get_running_loop()

        def hear(event: Event, node: str) -> None:
            if event.kind == "started":
                nodes.add(node)
                if nodes == {"one", "two"}:
                    both.set()
            elif event.kind == "finished":
                ended[event.action_id or ""] = event.details["outcome"].value
                if len(ended) == RUNS:
                    loop.call_soon_threadsafe(all_ended.set)
            elif event.kind == "budget" and event.details["per"] == "day":
                warned.append((event.details["budget"], event.details["per"]))

        one.on_event(lambda event: hear(event, "one"))
        two.on_event(lambda event: hear(event, "two"))
        async with one.node(), two.node():
            asked = [await one.run_in("acme", "s", 0) for _ in range(RUNS)]
            await asyncio.wait_for(all_ended.wait(), 120)
        assert nodes == {"one", "two"}
        good = [action.id for action in asked if ended[action.id] == "ok"]
        assert Counter(ended.values()) == {"ok": MAILS // 2, "call_limit": RUNS - MAILS // 2}
        assert len(peer.asked) == FETCHES
        (day,) = (await one.tenants.usage("acme")).days
        assert day.runs == RUNS
        assert day.counts["fetches"] == FETCHES
        assert day.counts["mails"] == 2 * len(good)
        assert day.counts["rows_written"] == len(good)
        assert day.counts["fetch_bytes"] == 100 * FETCHES
        assert sorted(warned) == [("fetches", "day"), ("mails", "day")]
        results = [(await one.actions.get(None, each)).result for each in good]
        assert {answer for result in results for answer in result} <= {1, "fetches day"}
        with one.context.database.read() as connection:
            kept = connection.exec_driver_sql("SELECT value FROM lodger_kv").scalar()
            held = connection.exec_driver_sql("SELECT count(*) FROM lodger_lots").scalar()
            mails = connection.exec_driver_sql("SELECT count(*) FROM lodger_outbox").scalar()
        assert (kept, held, mails) == (str(len(good)), 0, 2 * len(good))
