"""A secret that is used by handle never enters a worker: every byte that crosses is read, and the worker's memory is searched.

The same search finds it when a script reads it by the extra grant, so the search can see.
"""

import asyncio
import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.egress.peer import Asked, Peer, answer, opened, thread_of_peers

from lodger.engine import Engine
from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.engine.vault.keyring import Keyring
from lodger.sandbox import pool as sandbox_pool
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.workers import worker_run

VALUE = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
FORMS = (VALUE.encode(), base64.b64encode(VALUE.encode())[:-4], VALUE.encode("utf-16-le"))

HANDLE = """
export default async ({ kv, secrets }) => {
  const headers = { authorization: `Bearer ${secrets.KEY}`, "x-basic": secrets.basic("ann", "KEY") };
  const told = await (await fetch("@@/echo", { headers })).text();
  await kv.get("pause");
  return told.length;
};
"""
PLAIN = """
export default async ({ kv, secrets, mail }) => {
  const value = await secrets.read("KEY");
  const kept = { value, pair: "ann:" + value };
  console.log("the key is " + value, btoa(value));
  await kv.set("copy", "nothing of it");
  await mail.send({ to: "ann@acme.example", subject: "s", text: "key " + value });
  await kv.get("pause");
  FAIL
  return { value, ["k" + value]: [encodeURIComponent(value + "/")] };
};
"""


class Tapped:
    """A worker's socket; every byte that is sent to it is noted."""

    def __init__(self, end: Any, sent: list[bytes]) -> None:
        self._end, self._sent = end, sent

    def send(self, data: Any) -> int:
        count = self._end.send(data)
        self._sent.append(bytes(data)[:count])
        return int(count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._end, name)


def memory(pid: int) -> bytes:
    """Everything that a process can write to."""
    found = b""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        match = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
        if match is None or "[v" in line:
            continue
        begin, end = int(match[1], 16), int(match[2], 16)
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory_of:
            for at in range(begin, end, 1 << 20):
                try:
                    found += os.pread(memory_of.fileno(), min(1 << 20, end - at), at)
                except OSError:
                    break
    return found


@pytest.fixture
def peer() -> Iterator[Peer]:
    async def echo(asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(asked.raw, "200 OK", f"X-Auth: {asked.headers.get('authorization', '')}"))
        await writer.drain()

    made = Peer(paths={"/echo": echo})
    with thread_of_peers(made):
        yield made


def play(
    tmp_path: Path, peer: Peer, source: str, grant: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[bytes], bytes, Finished, Any]:
    """Run an action; give the frames to the worker, its memory near its end, how it ended, and the action as stored."""
    keys = tmp_path / "keys"
    Keyring(keys).add()
    frames: list[bytes] = []
    looked: list[bytes] = []

    class Watched(worker_run.WorkerRun):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self._socket: Any = Tapped(self._socket, frames)

        def _call(self, payload: bytes) -> None:
            if b"pause" in payload:
                looked.append(memory(self._worker.pid))
            super()._call(payload)

    monkeypatch.setattr(sandbox_pool, "WorkerRun", Watched)

    async def go() -> tuple[Finished, Any]:
        ended: list[Finished] = []

        class Kept(SandboxExecutor):
            async def execute(self, claim: Claim) -> Finished:
                ended.append(await super().execute(claim))
                return ended[-1]

        settings = opened(peer, secret_keys=keys)
        async with Engine.open(str(tmp_path / "l.db"), settings=settings) as engine:
            here = f"http://127.0.0.1:{peer.port}"
            await engine.tenants.create("acme", grants=[f"fetch:{here}", grant], people=["ann@acme.example"])
            await engine.secrets.put("acme", "KEY", VALUE, hosts=[here])
            await engine.scripts.put("acme", "s", source.replace("@@", here))
            done = asyncio.Event()
            loop = asyncio.get_running_loop()
            engine.on_event(lambda event: event.kind == "finished" and loop.call_soon_threadsafe(done.set))
            async with engine.node(Kept.of(engine.inner.host, workers=1)):
                action = await engine.run_in("acme", "s", 0)
                await asyncio.wait_for(done.wait(), 60)
            stored = (
                await engine.actions.get(None, action.id),
                await engine.actions.attempts(None, action.id),
                await engine.actions.logs(None, action.id),
            )
            return ended[0], stored

    finished, stored = asyncio.run(go())
    return frames, b"".join(looked), finished, stored


def test_a_handle_is_all_that_a_worker_holds(tmp_path: Path, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    frames, seen, ended, stored = play(tmp_path, peer, HANDLE, "secret:KEY", monkeypatch)
    assert ended.outcome is Outcome.OK, ended.error
    assert peer.asked[0].headers["authorization"] == f"Bearer {VALUE}"
    assert any(b"secrets.basic" in frame for frame in frames), (
        "the script's source crossed, so all is read that crosses"
    )
    assert b"{{secret:KEY}}" in seen, "the search reads the worker's memory"
    for form in FORMS:
        assert form not in b"".join(frames)
        assert form not in seen
    assert VALUE not in repr(stored) + repr(ended)


@pytest.mark.parametrize("ending", ["", "throw new Error('with ' + value);"])
def test_a_plain_value_is_there_and_is_kept_out_of_what_people_read(
    tmp_path: Path, peer: Peer, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    frames, seen, ended, stored = play(tmp_path, peer, PLAIN.replace("FAIL", ending), "secret:KEY:plain", monkeypatch)
    assert any(VALUE.encode() in frame for frame in frames)
    assert VALUE.encode() in seen
    shown = repr(stored) + repr(ended.result) + repr(ended.error) + repr(ended.logs) + repr(ended.effects)
    assert VALUE not in shown
    assert base64.b64encode(VALUE.encode()).decode()[:36] not in shown
    assert "[secret KEY]" in shown
    if ending:
        assert ended.error is not None
        assert (ended.error.message, ended.error.line) == ("with [secret KEY]", 9)
    else:
        assert json.loads(ended.result or "") == {"value": "[secret KEY]", "k[secret KEY]": ["[secret KEY]%2F"]}
