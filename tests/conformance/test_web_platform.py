"""The web platform API (WinterTC minimum common API): scripts of named checks, in real workers, on both runtimes of JavaScript.

A script calls ``check(name, work, wanted)`` and ``throws(name, work, error)``; ``@@`` in it is the address of a server that answers each
request with what it has received.
"""

import asyncio
import json
import re
from pathlib import Path

import pytest
from tests.e2e.echo_server import echo
from tests.e2e.script_runs import claim
from tests.egress.peer import Peer, answer, opened, thread_of_peers
from tests.unit.data.shop import Frozen, Shop

from lodger.engine.core.access.grants import parse
from lodger.engine.effects.finished import Finished
from lodger.engine.egress.way_out import WayOut
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool

HERE = Path(__file__).parent
SCRIPTS = {path.stem: path.read_text() for path in sorted((HERE / "web_platform").glob("*.js"))}
#: On one line, so that the lines of errors are those of the script.
PRELUDE = " ".join((HERE / "web_platform_checks.js").read_text().split("\n"))


def ended(runtime: str, script: str) -> Finished:
    """Run a script."""
    peer, shop = Peer(), Shop()
    form = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--'
    peer.paths |= {
        "/echo": echo,
        "/large": answer(("ä" * 700_000).encode()),
        "/form": answer(form, "200 OK", "Content-Type: multipart/form-data; boundary=b"),
    }

    async def go(address: str) -> Finished:
        pool = Pool(runtime=runtime, size=1, cores=1, profile="trusted")
        executor = SandboxExecutor(pool, HostSide(shop.read, shop.datasets, Frozen(), way_out=WayOut(opened(peer))))
        await executor.start()
        try:
            source = PRELUDE + SCRIPTS[script].replace("@@", address) + "\nreturn { done, failed };"
            grants = parse((f"fetch:{address}",))
            return await executor.execute(claim(source, grants=grants, limits=Limits(cpu_ms=5000)))
        finally:
            await executor.stop()

    try:
        with thread_of_peers(peer):
            return asyncio.run(go(f"http://127.0.0.1:{peer.port}"))
    finally:
        shop.close()


@pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_check_of_the_script_holds(runtime: str, script: str) -> None:
    run = ended(runtime, script)
    assert run.outcome is Outcome.OK, run.error
    found = json.loads(run.result or "null")
    assert not found["failed"], "\n".join(found["failed"])
    written = len(re.findall(r"await (?:check|throws)\(", SCRIPTS[script]))
    assert len(set(found["done"])) == len(found["done"]) == written
