"""Requests of actions in a real ledger, by a real node: a repeated run sends nothing twice, and slow hosts hold up no slot."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.egress.peer import Asked, Peer, answer, opened, thread_of_peers

from lodger.engine import Engine
from lodger.engine.capabilities import fetch_state
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.engine.store.schema.script_data import fetches, kv

SCRIPT = """
export default async ({ kv }) => {
  const before = await kv.get("n");
  const made = await (await fetch("@@/charge", { method: "POST", body: "10 EUR" })).text();
  const big = (await (await fetch("@@/big")).text()).length;
  await kv.set("n", made);
  if (before === "fail") throw new Error("after the request");
  return [before, made, big];
};
"""


class Meddled(SandboxExecutor):
    """Between an attempt's end and its commit, another writer changes what it read, this many times."""

    engine: Any = None
    times = 0

    async def execute(self, claim: Claim) -> Finished:
        ended = await super().execute(claim)
        if self.times > 0:
            self.times -= 1
            with self.engine.context.database.write() as connection:
                connection.execute(sa.delete(kv))
                values = {
                    "tenant_id": "one",
                    "scope": "",
                    "key": "n",
                    "value": f'"meddled {self.times}"',
                    "updated_us": 1,
                }
                connection.execute(sa.insert(kv).values(values))
        return ended


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    numbers = iter(range(100))

    async def charge(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(f"charge {next(numbers)}".encode()))
        await writer.drain()

    made.paths = {"/charge": charge, "/big": answer(b"x" * 900_000)}
    with thread_of_peers(made):
        yield made


def play(
    path: Path, peer: Peer, source: str, *, meddle: int, limits: dict[str, Any] | None = None
) -> tuple[list[str], Any, int]:
    """Run one action to its end; give the outcomes of its attempts, its result, and how many answers are still kept."""

    async def go() -> tuple[list[str], Any, int]:
        async with Engine.open(str(path), settings=opened(peer)) as engine:
            await engine.tenants.create("one", grants=[f"fetch:http://127.0.0.1:{peer.port}"], limits=limits)
            await engine.scripts.put("one", "s", source.replace("@@", peer.url("")))
            executor = Meddled.of(engine.inner.host, workers=1)
            executor.engine, executor.times = engine, meddle
            reported: asyncio.Queue[Event] = asyncio.Queue()
            loop = asyncio.get_running_loop()
            engine.on_event(lambda event: loop.call_soon_threadsafe(reported.put_nowait, event))
            outcomes = []
            async with engine.node(executor):
                action = await engine.run_in("one", "s", 0)
                while True:
                    event = await asyncio.wait_for(reported.get(), 120)
                    if event.kind == "finished":
                        outcomes.append(event.details["outcome"].value)
                        if event.details["state"] in ("done", "failed"):
                            break
            ended = await engine.actions.get(None, action.id)
            with engine.context.database.read() as connection:
                left = connection.scalar(sa.select(sa.func.count()).select_from(fetches))
            return outcomes, ended.result, left or 0

    return asyncio.run(go())


def test_a_run_repeated_after_conflicts_is_given_its_answers_again(tmp_path: Path, peer: Peer) -> None:
    outcomes, result, left = play(tmp_path / "l.db", peer, SCRIPT, meddle=2)
    assert outcomes == ["conflict", "conflict", "ok"]
    assert result == ["meddled 0", "charge 0", 900_000]
    assert [asked.line.split()[:2] for asked in peer.asked] == [["POST", "/charge"], ["GET", "/big"]]
    assert left == 0


def test_a_script_catches_the_time_out_of_a_request_before_its_own_wall_limit(
    tmp_path: Path, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request may take a part of the wall time that is left then; here a small one, so that the rest is long on any machine."""
    assert fetch_state.SHARE_OF_WALL <= 0.9
    monkeypatch.setattr(fetch_state, "SHARE_OF_WALL", 0.05)

    async def hang(_asked: Asked, reader: asyncio.StreamReader, _writer: object) -> None:
        await reader.read()

    peer.paths["/hang"] = hang
    source = """
    export default async () => {
      const codes = [];
      const caught = (error) => codes.push([error.name, error instanceof DOMException, error.code, error.cause.code].join());
      for (const _ of [1, 2]) await fetch("@@/hang").catch(caught);
      return codes;
    };
    """
    outcomes, result, _ = play(tmp_path / "l.db", peer, source, meddle=0, limits={"wall_ms": 20_000})
    assert (outcomes, result) == (
        ["ok"],
        ["TimeoutError,true,fetch_timeout,fetch_timeout", "TimeoutError,true,fetch_timeout,fetch_timeout"],
    )
