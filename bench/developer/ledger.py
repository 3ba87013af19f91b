"""Actions per second through the ledger with an executor that does nothing, on SQLite and PostgreSQL.

Two figures: *burn-down* (ready actions claimed, run by a real node, committed with outcome, attempt and usage), and
*whole* (clocks ticked, then the same). Run: ``python bench/developer/ledger.py [ACTIONS] [BATCH] [sqlite|postgresql|URL]``; wants a
quiet machine. PostgreSQL is a server of the bench's own, durability off (``fsync=off``), or on with LODGER_BENCH_FSYNC=1;
a URL names an empty database of yours. ``--peers FOLDER`` (:mod:`lodger.bench.peers`) measures graphile-worker and procrastinate on
the same server in the same run, and ``--check`` exits with 1 unless whole actions are so many times graphile-worker's jobs as promised.

``python bench/developer/ledger.py --nodes 1 2 4 8 [--rtt-ms 1] [--tenants 100] [--idle 10] [--json FILE] [--picture FILE]``
runs so many node processes on one PostgreSQL with durability on, and an executor that takes 5 ms: first while nothing is due, then
until ACTIONS are done. What the server did is counted by the server itself, and round trips of the nodes by a proxy (``--rtt-ms``).
The nodes read their settings, such as LODGER_POLL_S, from the environment.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

from scale import cpu_s, tree
from sqlalchemy import text

from lodger.bench import peers
from lodger.bench.slow_proxy import SlowProxy
from lodger.engine import Engine
from lodger.engine.core.access.audit_context import current_audit_context
from lodger.engine.core.clock import from_us
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim
from lodger.engine.core.settings import Settings
from lodger.engine.effects.finished import Finished
from lodger.engine.node.ledger_loop import ends
from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.rule import RuleSpec, ScheduleRules
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.schedules import schedules
from lodger.engine.store.schema.scheduling import actions
from lodger.engine.sync import Engine as SyncEngine
from lodger.sandbox.outcome import Outcome

sys.path.append(str(Path(__file__).resolve().parents[2]))  # tests.databases

TENANTS = 10
#: Whole actions for each no-op job of graphile-worker that is stored before the measurement.
PROMISED = {"SQLite": 2.5, "PostgreSQL": 1.6}
DONE = Finished(Outcome.OK, result="null")


class Nothing:
    """Answers every claim at once; tells when the last one has come."""

    def __init__(self) -> None:
        self.ran = 0

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def execute(self, claim: Claim) -> Finished:
        self.ran += 1
        return DONE


#: Slots so rare that hardly any falls into a run.
DAY_US = 86_400_000_000


_DAILY = compile_schedule(ScheduleRules((RuleSpec("every 1 day"),)))


def compile_daily(_rules: object, *, now: datetime) -> CompiledSchedule:
    """Compile nothing: the figures are the ledger's own."""
    return _DAILY


#: How long an action of the nodes' measurement takes.
TAKES_S = 0.005


class Waiting(Nothing):
    """Answers every claim after :data:`TAKES_S`."""

    async def execute(self, claim: Claim) -> Finished:
        await asyncio.sleep(TAKES_S)
        return await super().execute(claim)


async def measure(path: str, number: int, batch: int, synchronous: str, ticking: bool) -> float:
    """Seconds from the first moment of the node to the last commit."""
    ends.COMMIT_BATCH = tick.TICK_BATCH = batch
    settings = Settings(slots=batch, sqlite_synchronous=synchronous, lease_s=60)
    async with Engine.open(path, settings=settings, compile_schedule=compile_daily) as engine:
        for tenant in range(TENANTS):
            await engine.tenants.create(f"t{tenant}", limits={"concurrent_runs": 10_000, "schedules": 10_000_000})
            await engine.scripts.put(f"t{tenant}", "job", "export default () => null", force=True)
        if ticking:
            _schedule(engine, number)
        else:
            _fill(engine, number)
            _release(engine)
        done = asyncio.Event()
        left = number

        def hear(event: Event) -> None:
            nonlocal left
            if event.kind == "finished":
                left -= 1
                if left == 0:
                    done.set()

        engine.on_event(hear)
        begun = time.perf_counter()
        async with engine.node(Nothing()):
            await asyncio.wait_for(done.wait(), 600)
            took = time.perf_counter() - begun
    return took


def _schedule(engine: Engine, number: int) -> None:
    """Store schedules that owe one slot each, all in one transaction."""
    context, now = engine.context, engine.context.clock.now_us()
    daily = context.revision_cache.prepare(
        ScheduleRules((RuleSpec("every 1 day"),)), from_us(now), from_us(now - DAY_US)
    )
    wish = schedules.ScheduleFields("job", daily, "latest", "skip")
    with context.database.write() as connection:
        for each in range(number):
            schedules.create(
                context, connection, f"t{each % TENANTS}", f"s{each}", wish, now, current_audit_context(), now - DAY_US
            )


def _fill(engine: Engine, number: int, tenants: int = TENANTS) -> None:
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


def _release(engine: Engine) -> None:
    with engine.context.database.write() as connection:
        connection.exec_driver_sql("UPDATE lodger_turns SET startable_at = 0")


def places(wanted: str, folder: Path) -> Iterator[tuple[str, str, bool, str]]:
    """Return (name, synchronous, ticking, place) of each measurement."""
    if wanted in {"all", "sqlite"}:
        for synchronous in ("NORMAL", "FULL"):
            for ticking in (False, True):
                yield f"SQLite {synchronous}", synchronous, ticking, str(folder / f"{synchronous}-{ticking}.db")
    if "://" in wanted:
        yield "PostgreSQL", "FULL", False, wanted
    if wanted in {"all", "postgresql"}:
        from tests.databases import server

        if os.environ.get("LODGER_BENCH_FSYNC"):
            server.SETTINGS |= {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
        for ticking in (False, True):
            yield "PostgreSQL", "FULL", ticking, server.shared().url(server.shared().database())


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
        command = [sys.executable, __file__, "0", str(batch), place, "--as-node"]
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


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("actions", type=int, nargs="?", default=20_000)
    parser.add_argument("batch", type=int, nargs="?", default=200)
    parser.add_argument("database", nargs="?", default="all", help="all, sqlite, postgresql or a URL")
    parser.add_argument("--nodes", type=int, nargs="+")
    parser.add_argument(
        "--rtt-ms", type=float, help="nodes ask through a proxy, which counts and makes each round trip so much longer"
    )
    parser.add_argument("--tenants", type=int, nargs="+", default=[100])
    parser.add_argument("--idle", type=float, default=10.0, help="seconds that the nodes are measured while idle")
    parser.add_argument(
        "--as-node", action="store_true", help="be one of the node processes, on the URL, until SIGTERM"
    )
    parser.add_argument("--peers", type=Path, help="folder in which the other programs are installed")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a promised ratio is missed")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args(given)
    if arguments.as_node:
        run_node(arguments.database, arguments.batch)
        return
    if arguments.nodes:
        nodes_main(arguments)
        return
    if arguments.check and (not arguments.peers or "://" in arguments.database):
        parser.error("--check needs --peers, and databases of its own")
    if arguments.peers and not os.path.isdir(arguments.peers):  # noqa: PTH112 - Path raises an error at a name that is too long
        parser.error(
            f"--peers: there is no folder {str(arguments.peers)!r:.200}; name the one in which the other programs are installed"
        )
    whole: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, synchronous, ticking, place in places(arguments.database, Path(folder)):
            count = arguments.actions
            took = asyncio.run(measure(place, count, arguments.batch, synchronous, ticking))
            what = "tick, claim, commit" if ticking else "claim, commit      "
            print(
                f"{name:13} {what} {count:7} actions, batches of {arguments.batch}: {count / took:8.0f}/s", flush=True
            )
            if ticking:
                whole[name] = count / took
        if arguments.peers:
            broken = beside_peers(arguments.peers, whole)
            sys.exit(broken if arguments.check else 0)


def beside_peers(folder: Path, whole: dict[str, float]) -> int:
    """Print the rates of other programs, and ours as multiples of graphile-worker's; return 1 if one breaks its promise."""
    from tests.databases import server

    database = server.shared().url(server.shared().database(empty=True))
    found = peers.measure(folder, database)
    if "graphile-worker" not in found:
        sys.exit(f"graphile-worker does not run from {folder}")
    for name, figures in found.items():
        print(f"{name}: " + ", ".join(f"{figure:.1f} {unit}" for unit, figure in figures.items()))
    jobs, stored = (found["graphile-worker"][name] for name in ("per_s", "stored_and_run_per_s"))
    broken = 0
    for name, rate in whole.items():
        promised = PROMISED[name.split()[0]]
        broken |= rate < promised * jobs
        print(
            f"{name}: {rate / jobs:.2f} x graphile-worker's jobs, promised {promised}; "
            f"{rate / stored:.2f} x those that it also stores in the time"
        )
    return broken


if __name__ == "__main__":
    main()
