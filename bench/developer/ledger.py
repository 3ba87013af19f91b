"""Node processes on one PostgreSQL with durability on, and an executor that takes 5 ms: first while nothing is due, then until all is done.

``python bench/developer/ledger.py [ACTIONS] [BATCH] [--nodes 1 2 4] [--rtt-ms 1] [--tenants 100] [--idle 10] [--json FILE]``

What the server did is counted by the server itself, and round trips of the nodes by a proxy (``--rtt-ms``). The nodes read their settings,
such as LODGER_POLL_S, from the environment. ``lodger bench budgets`` measures actions that do nothing of a single node, beside their peers.
"""

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from scale import cpu_s
from sqlalchemy import text

from lodger.bench.load import tree
from lodger.bench.slow_proxy import SlowProxy
from lodger.engine import Engine
from lodger.engine.core.execution import Claim
from lodger.engine.core.settings import Settings
from lodger.engine.effects.finished import Finished
from lodger.engine.node.ledger_loop import ends
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.schema.scheduling import actions
from lodger.engine.sync import Engine as SyncEngine
from lodger.sandbox.outcome import Outcome

sys.path.append(str(Path(__file__).resolve().parents[2]))  # tests.databases

DONE = Finished(Outcome.OK, result="null")


#: How long an action of the nodes' measurement takes.
TAKES_S = 0.005


class Waiting:
    """Answers every claim after :data:`TAKES_S`."""

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def execute(self, claim: Claim) -> Finished:
        await asyncio.sleep(TAKES_S)
        return DONE


def _fill(engine: SyncEngine, number: int, tenants: int) -> None:
    context = engine.context
    now = context.clock.now_us()
    with context.database.write() as connection:
        ids = dict(connection.exec_driver_sql("SELECT tenant_id, id FROM lodger_scripts").all())
        rows = [
            {"tenant_id": f"t{n % tenants}", "id": context.ids.new(), "origin": "once", "slot": now, "due_at": now,
             "state": "ready", "script_id": ids[f"t{n % tenants}"], "script_version": 1}
            for n in range(number)
        ]  # fmt: skip
        connection.execute(actions.insert(), rows)


def _release(engine: SyncEngine) -> None:
    with engine.context.database.write() as connection:
        connection.exec_driver_sql("UPDATE lodger_turns SET startable_at = 0")


#: Figures of the server. Those of ``pg_stat_database`` and ``pg_stat_wal`` come seconds late; these are complete at each commit.
FIGURES = """
SELECT (SELECT sum(calls) FROM pg_stat_statements WHERE query = 'COMMIT') AS commits,
    pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS wal,
    (SELECT sum(calls) FROM pg_stat_statements) AS statements,
    (SELECT sum(shared_blks_hit + shared_blks_read) FROM pg_stat_statements) AS pages,
    (SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()) AS deadlocks
"""
#: What the sessions of the nodes do at this moment.
WAITS = """
SELECT coalesce(wait_event_type, 'CPU') FROM pg_stat_activity
WHERE state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()
"""
UNFINISHED = (
    "SELECT EXISTS (SELECT 1 FROM lodger_actions WHERE held = 0 AND state IN ('ready', 'waiting_retry')) OR EXISTS "
    "(SELECT 1 FROM lodger_actions WHERE state = 'running')"
)


def run_node(url: str, batch: int) -> None:
    """Run a node in this process until SIGTERM."""

    async def run() -> None:
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        ends.COMMIT_BATCH = tick.TICK_BATCH = batch
        settings = Settings(slots=batch)
        async with Engine.open(url, settings=settings) as engine, engine.node(Waiting()):
            await ended.wait()

    asyncio.run(run())


def _settled(inner: Any, pids: list[int], server: int, proxy: SlowProxy) -> dict[str, float]:
    with inner.context.database.read() as connection:
        found = {name: float(number) for name, number in connection.execute(text(FIGURES)).mappings().one().items()}
    cpu = {"nodes_cpu_s": cpu_s(pids), "server_cpu_s": cpu_s(list(tree(server)))}
    return found | cpu | {"trips": float(proxy.trips)}


def scale_out(
    url: str, server: int, nodes: int, tenants: int, number: int, batch: int, idle_s: float, rtt_ms: float | None
) -> dict[str, Any]:
    """Return what one number of nodes does while idle, by second, and for so many actions, by action."""
    with ExitStack() as stack:
        proxy = stack.enter_context(SlowProxy(url, rtt_ms or 0.0))
        place = url if rtt_ms is None else proxy.url
        command = [sys.executable, __file__, "0", str(batch), "--as-node", place]
        engine = stack.enter_context(SyncEngine.open(url))
        for tenant in range(tenants):
            engine.tenants.create(f"t{tenant}", limits={"concurrent_runs": 10_000})
            engine.scripts.put(f"t{tenant}", "job", "export default () => null", force=True)
        processes = [subprocess.Popen(command) for _ in range(nodes)]
        stack.callback(lambda: [process.wait(60) for process in processes])
        stack.callback(lambda: [process.terminate() for process in processes])
        pids = [process.pid for process in processes]
        while _scalar(engine, text("SELECT count(*) FROM lodger_nodes WHERE state = 'alive'")) < nodes:
            time.sleep(0.1)
        time.sleep(min(3.0, idle_s))
        before = _settled(engine, pids, server, proxy)
        time.sleep(idle_s)
        after = _settled(engine, pids, server, proxy)
        idle = {name: (after[name] - before[name]) / idle_s for name in after}
        sessions = _scalar(engine, text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")) - 1
        _fill(engine, number, tenants)
        with engine.context.database.write() as connection:
            connection.exec_driver_sql("ANALYZE")
        before, waits, begun = _settled(engine, pids, server, proxy), Counter[str](), time.perf_counter()
        _release(engine)
        while _scalar(engine, text(UNFINISHED)):
            with engine.context.database.read() as connection:
                waits.update(connection.scalars(text(WAITS)))
            assert all(process.poll() is None for process in processes), "a node ended"
            time.sleep(0.02)
        took = time.perf_counter() - begun
        after = _settled(engine, pids, server, proxy)
        with engine.context.database.read() as connection:
            shares = sorted(connection.scalars(text("SELECT count(*) FROM lodger_attempts GROUP BY node_id")))
            ok = text("SELECT count(*), count(DISTINCT action_id) FROM lodger_attempts WHERE outcome = 'ok'")
            assert tuple(connection.execute(ok).one()) == (number, number), "each action is done once"
            # Of nodes that had too little of the machine to keep their leases.
            lost = connection.scalar(text("SELECT count(*) FROM lodger_attempts WHERE outcome <> 'ok'"))
        sampled = sum(waits.values()) or 1
        return {
            "nodes": nodes, "tenants": tenants, "actions": number, "per_second": number / took, "shares": shares, "lost": lost,
            "sessions": sessions, "idle": idle,
            "each": {name: (after[name] - before[name]) / number for name in after},
            "waits": {name: count / sampled for name, count in waits.most_common()},
        }  # fmt: skip


def _scalar(engine: Any, statement: Any) -> Any:
    with engine.context.database.read() as connection:
        return connection.scalar(statement)


def nodes_main(arguments: argparse.Namespace) -> None:
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    from tests.databases import server

    server.SETTINGS |= {
        "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_preload_libraries": "pg_stat_statements",
        "pg_stat_statements.track_utility": "on", "max_connections": str(20 + 8 * max(arguments.nodes)),
    }  # fmt: skip
    results = []
    for tenants in arguments.tenants:
        for nodes in arguments.nodes:
            own = server.own()
            try:
                postmaster = int((own.folder / "data" / "postmaster.pid").read_text().split()[0])
                url = own.url(own.database())
                with SyncEngine.open(url) as engine, engine.context.database.write() as connection:
                    connection.exec_driver_sql("CREATE EXTENSION pg_stat_statements")
                found = scale_out(
                    url,
                    postmaster,
                    nodes,
                    tenants,
                    arguments.actions,
                    arguments.batch,
                    arguments.idle,
                    arguments.rtt_ms,
                )
            finally:
                own.remove()
            results.append(found)
            print(described(found), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results))
    if arguments.picture:
        arguments.picture.write_text(picture(results))


def described(found: dict[str, Any]) -> str:
    idle, each = found["idle"], found["each"]
    waits = ", ".join(f"{name} {share:.0%}" for name, share in found["waits"].items())
    return (
        f"{found['nodes']} nodes, {found['tenants']} tenants: {found['per_second']:.0f}/s, shares {found['shares']}, "
        f"{found['lost']} attempts lost, {each['deadlocks'] * found['actions']:.0f} deadlocks\n"
        f"  an action: {each['statements']:.2f} statements, {each['commits']:.3f} commits, {each['trips']:.3f} round trips, "
        f"{each['pages']:.0f} pages, "
        f"{each['wal']:.0f} B of WAL, {each['nodes_cpu_s'] * 1000:.2f} ms of the nodes, "
        f"{each['server_cpu_s'] * 1000:.2f} ms of the server\n"
        f"  active sessions: {waits}\n"
        f"  idle: {found['sessions']} sessions; a second: {idle['statements']:.1f} statements, {idle['commits']:.1f} commits, "
        f"{idle['wal']:.0f} B of WAL, "
        f"nodes {idle['nodes_cpu_s']:.2%}, server {idle['server_cpu_s']:.2%} of a core"
    )


def picture(results: list[dict[str, Any]]) -> str:
    """Return an SVG document: actions per second, and what each costs, over the number of nodes."""
    from matplotlib.figure import Figure

    from lodger.bench.rule_picture import svg_text

    figure = Figure(figsize=(15, 4), layout="constrained")
    rate, cpu, idle = figure.subplots(1, 3)
    for tenants in sorted({each["tenants"] for each in results}):
        rows = [each for each in results if each["tenants"] == tenants]
        counts = [each["nodes"] for each in rows]
        rate.plot(counts, [each["per_second"] for each in rows], marker="o", label=f"{tenants} tenants")
        cpu.plot(
            counts, [each["each"]["nodes_cpu_s"] * 1000 for each in rows], marker="o", label=f"nodes, {tenants} tenants"
        )
        cpu.plot(
            counts,
            [each["each"]["server_cpu_s"] * 1000 for each in rows],
            marker="s",
            label=f"server, {tenants} tenants",
        )
        idle.plot(counts, [each["idle"]["statements"] for each in rows], marker="o", label=f"{tenants} tenants")
    for axes, title in (
        (rate, "actions per second"),
        (cpu, "ms of CPU per action"),
        (idle, "statements per second while idle"),
    ):
        axes.set(xlabel="nodes", title=title, ylim=(0, None))
        axes.legend()
    return svg_text(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("actions", type=int, nargs="?", default=20_000)
    parser.add_argument("batch", type=int, nargs="?", default=200)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument(
        "--rtt-ms", type=float, help="nodes ask through a proxy, which counts and makes each round trip so much longer"
    )
    parser.add_argument("--tenants", type=int, nargs="+", default=[100])
    parser.add_argument("--idle", type=float, default=10.0, help="seconds that the nodes are measured while idle")
    parser.add_argument("--as-node", metavar="URL", help="be one of the node processes, on the URL, until SIGTERM")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    if arguments.as_node:
        run_node(arguments.as_node, arguments.batch)
    else:
        nodes_main(arguments)


if __name__ == "__main__":
    main()
