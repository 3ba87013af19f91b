"""A house with thousands of tenants and tens of thousands of actions, copied from rows that an engine wrote, and what its pages cost.

``python -m tests.web.large_house [URL [ACTIONS [DAYS]]]`` prints the cost of each page beside that of an empty ledger.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection, Table, event, select, text
from tests.api.running_api import RunningApi, running_api
from tests.store.bench import Bench
from tests.web.every_page import paths

from lodger.engine.effects.finished import Finished
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.schema.access import audit
from lodger.engine.web.dashboard import Dashboard
from lodger.sandbox.job import LogLine, ScriptError
from lodger.sandbox.outcome import Outcome

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench" / "developer"))
from growth import BLOCKS, SERIES

TENANTS, SCHEDULES, SCRIPTS, ACTIONS, ENTRIES = 5000, 400, 200, 2500, 10_000
#: The days of the first actions; the latest of them have not started.
DAYS, DAY_US, WAITING = 40, 86_400_000_000, 1000
#: Number after that of the latest action.
TOP = 100_000_000
#: Actions that one statement writes.
CHUNK = 500_000
#: Orders and filters of each list.
SORTS = {
    "tenants": "-id name -created runs -failures -latest plan -budget",
    "schedules": "name -next created -failures",
    "actions": "created due -due -ended",
    "scripts": "-name created version",
}
FILTERS = {
    "actions": (
        "error:price since:24h", "error:nothing sort:-due", "state:failed", "state:ready", "-error:price", "schedule:s*", "script:job",
        "tenant:tenant-00100", "params:x", "label:x", "ended_since:1h", "outcome:script_error reason:x origin:slot version:1",
    ),
    "schedules": ("failures:1 script:job", "state:armed sort:-next", "tenant:tenant-00100", "note:x label:x params:x"),
    "tenants": ("state:active", "tenant-0010", "name:shop*"),
    "scripts": ("name:script-00*",),
}  # fmt: skip
#: Nouns of which the house has many; others' lists are as short as those of an empty ledger.
LARGE = {"actions", "audit", "schedules", "scripts", "tenants"}
LISTS = ("/tenants", "/schedules", "/actions", "/t/acme/schedules", "/t/acme/actions", "/t/acme/scripts")
#: Values of an action that are not its pattern's.
OWN = {
    "id": "each.id", "tenant_id": "each.tenant_id", "schedule_id": "coalesce(each.schedule_id, p.schedule_id)",
    "origin": "'slot'", "slot": "at_us", "due_at": "at_us",
    "started_us": "CASE WHEN each.state = 'ready' THEN p.started_us ELSE at_us + 5000 END",
    "finished_us": "CASE WHEN each.state = 'ready' THEN p.finished_us ELSE at_us + 250000 END",
    "error": "replace(p.error, 'order 0', 'order ' || CASE WHEN n % 8 > 0 THEN n ELSE n % 160 END)",
}  # fmt: skip
STACK = "\n".join(f"    at step{at} (main.js:{at}:7)" for at in range(8))
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a page cost: statements, work of the database, size, and the seconds of the fastest of several times.

    Attributes:
        work: hundreds of instructions of SQLite, or pages of PostgreSQL's tables and indexes.
    """

    statements: int
    work: int
    size: int
    seconds: float


@contextmanager
def open_house(url: str, folder: Path) -> Iterator[RunningApi]:
    """Serve a ledger of one tenant, with the dashboard."""
    with running_api(url, secret_keys=folder / "keys") as made:
        furnish(made)
        made.token("admin")
        Dashboard(made.api).add()
        yield made


def pages(made: RunningApi) -> list[str]:
    """Return the paths of every page of the tenant acme and of all tenants, and of each list in each order, filtered and searched."""
    listing = {"list", "errors", "durations", "overdue", "running", "activity", "recent"}
    routes = [each for each in made.engine.table.routes if each.verb in listing and each.noun in LARGE]
    operations = sorted({each.name for each in routes})
    of_tenants = {f"/t/acme/operations/{each.name}" for each in routes if each.of_tenant}
    actions = [made.engine.actions.list("acme", state=each, limit=1)[0].id for each in ("done", "failed", "ready")]
    found = paths(made, schedule=["s"], script=["job"], action=actions, operation=operations)
    found = [each for each in found if not each.startswith("/t/acme/operations/") or each in of_tenants]
    for path in LISTS:
        noun = path.rpartition("/")[2]
        orders = (f"sort:{name}" for name in SORTS[noun].split())
        filters = () if path == "/t/acme/actions" else FILTERS[noun]
        found += [f"{path}?filter={text}" for text in ("01234", "nothing", *orders, *filters)]
    found += [f"{path}?range={each}" for path in ("/", "/t/acme") for each in ("24h", "7d", "30d")]
    found += [f"/t/acme/actions?{each}" for each in ("script=job", "schedule=s", "state=failed&outcome=script_error")]
    return [*found, "/audit?verb=tenants.create", "/audit?actor=none", "/t/acme/audit?verb=schedules.edit"]


def late_pages(made: RunningApi) -> dict[str, str]:
    """Return the path of a page of each list after most of its entries, or after many, by that of the list."""
    engine, few, many = made.engine, 30, 1000
    cursors = {
        "/tenants": engine.tenants.activity(limit=many).next,
        "/schedules": engine.schedules.list(limit=many).next,
        "/actions": engine.actions.list(limit=many, filter="").next,
        "/t/acme/actions": engine.actions.list("acme", limit=ACTIONS // 5 - few, filter="").next,
        "/t/acme/schedules": engine.schedules.list("acme", limit=SCHEDULES - few).next,
        "/t/acme/scripts": engine.scripts.list("acme", limit=SCRIPTS - few).next,
        "/audit": engine.audit.list(limit=many).next,
    }
    assert all(cursors.values()), cursors
    return {path: f"{path}?cursor={cursor}" for path, cursor in cursors.items()}


def costs(made: RunningApi, asked: Iterable[str], times: int = 1) -> dict[str, Cost]:
    """Return what each of some pages costs."""
    database, counted = made.engine.context.database, {"statements": 0, "work": 0}

    def count(connection: Connection, *_statement: object) -> None:
        counted["statements"] += 1
        if database.driver.name == "sqlite":
            connection.connection.dbapi_connection.set_progress_handler(step, 100)  # type: ignore[union-attr]  # it is open

    def step() -> None:
        counted["work"] += 1

    def flush(raw: Any, _record: object) -> None:
        """Let a server's session add what it counted to the sums."""
        raw.rollback()
        raw.autocommit = True
        raw.execute("SELECT pg_stat_force_next_flush()")
        raw.autocommit = False

    def pages_read() -> int:
        with database.read() as connection:
            return sum(int(number) for name, number in connection.execute(text(BLOCKS)) if name != "wal")

    event.listen(database.engine, "before_cursor_execute", count)
    if server := database.driver.name == "postgresql":
        event.listen(database.engine, "checkin", flush)
    found: dict[str, Cost] = {}
    with made.browser("admin") as browser:
        browser.headers["cache-control"] = "no-cache"
        for path in asked:
            seconds = []
            for _ in range(times):
                before = pages_read() if server else 0
                counted |= {"statements": 0, "work": 0}
                begun = time.perf_counter()
                answer = browser.get(path)
                seconds.append(time.perf_counter() - begun)
                assert answer.status_code == 200, path
                statements, work = counted["statements"], pages_read() - before if server else counted["work"]
            found[path] = Cost(statements, work, len(answer.content), min(seconds))
    event.remove(database.engine, "before_cursor_execute", count)
    if server:
        event.remove(database.engine, "checkin", flush)
    return found


def furnish(made: RunningApi) -> None:
    """Make the tenant acme with a script, a schedule, an action that is done, one that failed, and one that waits."""
    made.furnish()
    bench = Bench(made.engine, made.clock)
    for outcome in (Outcome.OK, Outcome.SCRIPT_ERROR, None):
        made.engine.actions.run_now("acme", "s")
        bench.lease()
        bench.renew()
        error = ScriptError("TypeError", "order 0 of 7 has no price", STACK, "main.js", 1)
        if outcome is not None:
            finished = Finished(
                outcome,
                "1" if outcome is Outcome.OK else None,
                None if outcome is Outcome.OK else error,
                (LogLine("info", "read 7 orders"),),
            )
            bench.commit(*bench.claim(), finished=finished)
        made.clock.advance(1)


def fill(made: RunningApi, actions: int = ACTIONS, days: int = DAYS) -> None:
    """Add tenants, further schedules and scripts of acme, actions of which a fifth are acme's, and entries of the audit log."""
    with made.engine.context.database.write() as connection:
        for table in (tables.tenants, tables.turns, tables.scripts, tables.script_versions, tables.usage_days):
            (row,) = _rows(connection, table)
            _add(connection, table, (row | _of_tenant(table, n) for n in range(1, TENANTS)))
        for table in (tables.scripts, tables.script_versions):
            (row,) = _rows(connection, table)
            key = "id" if table is tables.scripts else "script_id"
            named = (row | {key: _id(2, n)} for n in range(SCRIPTS))
            _add(connection, table, (each | {"name": f"script-{n:03}"} for n, each in enumerate(named)))
        for table in (tables.schedules, tables.schedule_revisions, tables.schedule_clock):
            (row,) = _rows(connection, table)
            key = "id" if table is tables.schedules else "schedule_id"
            _add(connection, table, (row | {"tenant_id": _tenant(n), key: _id(1, n)} for n in range(1, TENANTS)))
            _add(connection, table, (row | {key: _id(3, n), "name": f"schedule-{n:03}"} for n in range(SCHEDULES)))
        entry = _rows(connection, audit)[0]
        _add(connection, audit, (entry | {"id": _id(5, n), "verb": "schedules.edit"} for n in range(ENTRIES)))
    add_actions(made, TOP - actions, TOP, days * DAY_US // actions)


def add_actions(made: RunningApi, first: int, end: int, us: int = DAYS * DAY_US // ACTIONS) -> None:
    """Add actions with their attempts and logs, one each so many microseconds up to TOP; one in four failed, with a message of its own or a
    common one."""
    database = made.engine.context.database
    with database.write() as connection:
        states = {row["state"]: row["id"] for row in _rows(connection, tables.actions)}
        given = {
            "now": made.clock.us, "top": TOP, "us": us, "waiting": TOP - WAITING, "others": TENANTS - 1, "schedules": SCHEDULES,
        } | states  # fmt: skip
        for low in range(first, end, CHUNK):
            _add_chunk(connection, given | {"low": low, "high": min(end, low + CHUNK) - 1})
    with database.write() as connection:
        connection.exec_driver_sql("ANALYZE")
    database.engine.dispose()  # a connection of SQLite keeps the statistics that it has read


def _add_chunk(connection: Connection, given: dict[str, Any]) -> None:
    """Add the actions from ``low`` to ``high``."""
    kind = connection.dialect.name
    for table in (tables.actions, tables.attempts, tables.attempt_logs):
        columns = [column.name for column in table.c]
        values, key = [OWN.get(name, "p." + name) for name in columns], "id"
        if table is not tables.actions:
            own, key = {"action_id": "each.id", "tenant_id": "each.tenant_id"}, "action_id"
            values = [own.get(name, "p." + name) for name in columns]
        connection.execute(
            text(
                f"{_each(kind)} INSERT INTO {table.name} ({', '.join(columns)}) SELECT {', '.join(values)} "
                f"FROM each JOIN {table.name} p ON p.tenant_id = 'acme' AND p.{key} = each.pattern"
            ),
            given,
        )


def _each(kind: str) -> str:
    """Return the beginning of a statement whose rows ``each`` are actions from ``low`` to ``high``."""
    id_type = "uuid" if kind == "postgresql" else "TEXT"
    padded = {"postgresql": "lpad(CAST({} AS text), {}, '0')", "sqlite": "substr('000000000000' || {0}, -{1})"}[kind]

    def uuid(kind: str, number: str) -> str:
        """Return the SQL of :func:`_id`."""
        return f"CAST('019b0000-0000-7000-8{kind}-' || {padded.format(number, 12)} AS {id_type})"

    return f"""
    {SERIES[kind]}, numbered AS (
        SELECT n, :now - (:top - n) * :us AS at_us, 1 + n % :others AS other,
            CASE WHEN n >= :waiting THEN 'ready' WHEN n % 4 = 0 THEN 'failed' ELSE 'done' END AS state FROM series
    ), each AS (
        SELECT n, at_us, state, {uuid("004", "n")} AS id,
            CASE WHEN n % 5 = 0 THEN 'acme' ELSE 'tenant-' || {padded.format("other", 5)} END AS tenant_id,
            CASE WHEN n % 5 > 0 THEN {uuid("001", "other")} WHEN n % 2 = 1 THEN {uuid("003", "n % :schedules")} END AS schedule_id,
            CAST(CASE state WHEN 'ready' THEN :ready WHEN 'failed' THEN :failed ELSE :done END AS {id_type}) AS pattern FROM numbered
    )"""


def _tenant(n: int) -> str:
    return f"tenant-{n:05}"


def _of_tenant(table: Table, n: int) -> Row:
    own = {"id" if table is tables.tenants else "tenant_id": _tenant(n), "name": f"Shop {n}", "runs": n}
    return {
        name: value
        for name, value in own.items()
        if name in table.c and (table is not tables.scripts or name != "name")
    }


def _id(kind: int, n: int) -> str:
    return f"019b0000-0000-7000-8{kind:03}-{n:012}"


def _rows(connection: Connection, table: Table) -> list[Row]:
    tenant = table.c.id if table is tables.tenants else table.c.tenant_id
    return [dict(each) for each in connection.execute(select(table).where(tenant == "acme")).mappings()]


def _add(connection: Connection, table: Table, rows: Iterable[Row]) -> None:
    insert_many(connection, table, [{name: row[name] for name in row if name in table.c} for row in rows])


def main(url: str | None = None, actions: str = "50000", days: str = "2") -> None:
    """Print what each page costs, the slowest first."""
    with TemporaryDirectory() as folder, open_house(url or f"sqlite:///{folder}/ledger.db", Path(folder)) as made:
        asked = pages(made)
        empty = costs(made, asked, 3)
        fill(made, int(actions), int(days))
        full = costs(made, [*asked, *late_pages(made).values()], 3)
        for path in sorted(full, key=lambda path: -full[path].seconds):
            beside = f"| {_shown(empty[path])}" if path in empty else ""
            sys.stdout.write(f"{path[:60]:60} {_shown(full[path])} {beside}\n")


def _shown(cost: Cost) -> str:
    return f"{cost.seconds * 1000:6.0f} ms {cost.statements:4} {cost.work:7} {cost.size / 1000:6.0f} kB"


if __name__ == "__main__":
    main(*sys.argv[1:])
