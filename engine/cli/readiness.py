"""The checks of ``lodger doctor --ready``: walls, ledger, settings of its database, clocks, zone data, disks, nodes."""

import resource
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lodger.engine.core.clock import Clock, SystemClock, from_us
from lodger.engine.core.errors import Explained
from lodger.engine.core.settings import FILES_OF_ATTEMPT
from lodger.engine.recurrence.calendar.zones import tzdata_version
from lodger.engine.store.drivers.features import Check

if TYPE_CHECKING:
    from lodger.engine.core.settings import Settings
    from lodger.engine.sync import Engine

#: Difference between two clocks from which it is a warning; a node works with none above the second, microseconds.
OFFSET_WARN_US, OFFSET_FAIL_US = 200_000, 2_000_000
#: Free bytes of a disk below which it is a warning, and a failure.
DISK_WARN, DISK_FAIL = 2 * 1024**3, 200 * 1024**2
#: Releases of zone data that are older than so many years may lack changes.
TZDATA_YEARS = 1
#: Open files that a service needs for a thousand clients.
DESCRIPTORS = 4096

_MIGRATION = {
    "absent": ("there is no ledger at this place", "lodger db upgrade"),
    "empty": ("the database has no ledger", "lodger db upgrade"),
    "behind": ("the schema is older than this version", "lodger db upgrade"),
    "newer": ("a later Lodger has upgraded it", "install that version"),
}


def checks(settings: "Settings", walls: dict[str, Any], db: str | None, clock: Clock | None = None) -> list[Check]:
    """Return every check; an unreachable ledger is one that fails. ``clock`` is this host's."""
    clock = clock or SystemClock()
    found = [_walls(walls), _tzdata(clock), _descriptors(settings.slots), patiences(settings), _cache_disk(settings)]
    return found + _of_ledgers(db, clock)


def _of_ledgers(db: str | None, clock: Clock) -> list[Check]:
    """Return the checks of each ledger, with its name if there are several."""
    from lodger.engine.cli.ledger import each_ledger, opened
    from lodger.engine.cli.place import chosen

    found: list[Check] = []

    def add(name: str | None, checks: Callable[[], Iterable[Check]]) -> None:
        """Add some checks; an error is one that fails."""
        try:
            listed = list(checks())
        except Explained as error:
            listed = [Check("ledger", "fail", error.code, error.what, error.fix or "see lodger errors")]
        found.extend(each if name is None else replace(each, name=f"{name}: {each.name}") for each in listed)

    def each_part() -> Iterator[Check]:
        """Yield the checks of one ledger, or of each of several, and of these as parts of the system."""
        if server := chosen(db).server:
            yield Check(
                "ledger", "warn", server, "its settings can only be checked on its host", "run it there with --db"
            )
            with opened(db) as engine:
                yield from (nodes(engine), *_locks(engine))
            return
        places = each_ledger(db)
        if len(places) == 1:
            yield from _ledger(db, *places[0], clock)
            return
        for name, place in places:
            add(name, partial(_ledger, name, name, place, clock))
        with opened(db) as engine:
            for name, problem in engine.parts():
                if problem is None:
                    yield Check(f"ledger {name}", "ok", "reachable")
                else:
                    fix = "start its server, or correct its line in the file that LODGER_LEDGERS names"
                    yield Check(f"ledger {name}", "fail", "unreachable", problem, fix)

    add(None, each_part)
    return found


def _walls(walls: dict[str, Any]) -> Check:
    """Check the sandbox walls that ``lodger doctor`` found standing."""
    layers = f"{walls['layers']} of 6"
    if walls["ok"]:
        return Check("walls", "ok", layers)
    problem = walls["problem"]
    return Check("walls", "fail", layers, problem["message"], problem.get("fix") or "see lodger doctor")


def _tzdata(clock: Clock) -> Check:
    """Check the age of the zone data."""
    version = tzdata_version()
    is_recent = int(version[:4]) >= clock.now_us() // 31_556_952_000_000 + 1970 - TZDATA_YEARS
    why, fix = "recent changes of time zones are missing", "pip install --upgrade tzdata"
    return Check.of("tzdata", version, why, fix, ok=is_recent, state="warn")


def _descriptors(slots: int) -> Check:
    """Check that this process may open enough files for so many attempts at once."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    value = "unlimited" if hard == resource.RLIM_INFINITY else str(hard)
    suffices = hard == resource.RLIM_INFINITY or hard >= max(DESCRIPTORS, FILES_OF_ATTEMPT * slots)
    why = f"a thousand clients and {slots} slots need more"
    fix = "raise the limit (ulimit -n, LimitNOFILE=), or lower LODGER_SLOTS"
    return Check.of("open files", value, why, fix, ok=suffices, state="warn")


def patiences(settings: "Settings") -> Check:
    """Check the order of the times after which an answer is given up: call, lease, database.

    A run whose database is silent then ends by its call, before its node loses its lease. A wall may be longer than a lease, which
    the node renews while the run lasts.
    """
    from lodger.engine.data.sets.reads import SILENCE_S, STATEMENT_S
    from lodger.engine.store.drivers.patience import PATIENCE_S

    each = {"call": STATEMENT_S + SILENCE_S, "lease": settings.lease_s, "database": PATIENCE_S}
    ok = sorted(each.values()) == list(each.values())
    value = (" < " if ok else ", ").join(f"{name} {seconds:g} s" for name, seconds in each.items())
    why = "the lease is not between the patience with a call and that with a database: runs are begun again when it is silent"
    fix = f"set LODGER_LEASE_S between {each['call']:g} and {each['database']:g}"
    return Check.of("patience", value, why, fix, ok=ok, state="warn")


def _cache_disk(settings: "Settings") -> Check:
    """Check the free space of the folder of the code cache."""
    from lodger.sandbox.runtimes.js.artefact import candidates

    return _disk("disk of the cache", next(iter(candidates(settings.cache_dir))))


def _disk(name: str, place: Path) -> Check:
    """Check the free space of a folder."""
    while not place.exists():
        place = place.parent
    usage = shutil.disk_usage(place)
    value = f"{usage.free / 1024**3:.1f} GiB free in {place}"
    why, fix = "commits fail when it is full", f"free space, or move it: {place}"
    state = "fail" if usage.free < DISK_FAIL else "warn"
    return Check.of(name, value, why, fix, ok=usage.free >= DISK_WARN, state=state)


def _ledger(db: str | None, name: str | None, place: str, clock: Clock) -> Iterator[Check]:
    """Yield the checks of a ledger; nothing is changed, and it is opened only if its schema is current."""
    from lodger.engine.cli.ledger import inspected, opened

    found = inspected(name, place)
    if not found.usable:
        why, fix = _MIGRATION[found.verdict]
        yield Check("schema", "fail", f"{found.revision or 'none'}, wanted {found.wanted}", why, fix)
        return
    yield Check("schema", "ok", str(found.revision))
    with opened(db) as engine:
        file = engine.context.database.url.database
        if not engine.context.database.driver.is_remote and file:
            yield _disk("disk of the ledger", Path(file).resolve())
        with engine.context.database.read() as connection:
            yield from engine.context.database.driver.check_settings(connection)
        yield _clock(engine, clock)
        yield _written(engine)
        yield from (nodes(engine), *_locks(engine))
        yield _retention(engine)


def _clock(engine: "Engine", clock: Clock) -> Check:
    """Check this machine's clock against the database server's."""
    from lodger.engine.store.context import database_us

    if not engine.context.database.driver.is_remote:
        return Check("clock", "ok", "this host's own")
    with engine.context.database.read() as connection:
        asked_us = clock.now_us()
        server_us = database_us(connection)
        doubt_us = (clock.now_us() - asked_us) // 2
    offset_us = server_us - asked_us - doubt_us
    value = f"{offset_us / 1000:+.0f} ms to the database"
    beyond_us = max(0, abs(offset_us) - doubt_us)
    why, fix = "a node that is more than two seconds off claims nothing", "synchronize both hosts by NTP"
    state = "fail" if beyond_us > OFFSET_FAIL_US else "warn"
    return Check.of("clock", value, why, fix, ok=beyond_us <= OFFSET_WARN_US, state=state)


def _written(engine: "Engine") -> Check:
    """Check that no row of the ledger was written with a time in the future, which stops schedules until then."""
    from lodger.engine.store.lifecycle import wrong_clock

    now_us = engine.context.ledger_us()
    with engine.context.database.read() as connection:
        engine.context.database.driver.allow_scans(connection)
        last_us, found = wrong_clock.last_written_us(connection), wrong_clock.find(connection, now_us)
    if not found:
        return Check("ledger's past", "ok", "before now")
    return Check(
        "ledger's past", "fail", f"until {from_us(last_us).isoformat()}" if last_us > now_us else "in the future",
        wrong_clock.describe(found), "see whether this host's clock is right (date), then: lodger db repair-clock --yes",
    )  # fmt: skip


def nodes(engine: "Engine") -> Check:
    """Check the nodes of the ledger."""
    from lodger.engine.policy.placement import SATURATED

    alive = [each for each in engine.nodes.list() if each.state == "alive"]
    if not alive:
        return Check("nodes", "warn", "0", "nothing runs", "lodger up")
    names = [each.name for each in engine.nodes.list() if each.state != "silent"]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        return Check(
            "nodes", "warn", f"{len(alive)}, several of one name: {' '.join(twice)}",
            "placement and pausing by name take any of them, and their figures are mixed", "lodger up --name NAME, a name for each node",
        )  # fmt: skip
    if full := [f"{each.name} {each.saturation:.0%}" for each in alive if (each.saturation or 0.0) >= SATURATED]:
        return Check(
            "nodes", "warn", f"{len(alive)}, saturated: {', '.join(full)}",
            "they had no free slot or too little CPU time in this part of the last minute, so runs start late",
            "add a node or CPUs, raise LODGER_SLOTS while CPUs are idle, or run schedules less often",
        )  # fmt: skip
    return Check("nodes", "ok", str(len(alive)))


def _locks(engine: "Engine") -> list[Check]:
    """Check that no session of the database waits long for a lock; each that does is a check of its own."""
    found = [
        Check(
            "locks", "warn", f"session {each.waits.pid} has waited {each.waited_s:.1f} s",
            "; ".join([f"{each.waits.application}: {each.waits.query}", *(
                f"blocked by session {one.pid} ({one.application}, {one.state}, "
                f"transaction open for {one.transaction_s:.1f} s): {one.query}"
                for one in each.blockers
            )]),
            f"to end what blocks it: SELECT pg_terminate_backend({each.blockers[-1].pid})" if each.blockers else "lodger metrics blocked",
        )
        for each in engine.metrics.blocked()
    ]  # fmt: skip
    return found or [Check("locks", "ok", "no session waits")]


def _retention(engine: "Engine") -> Check:
    """Check reports of the nodes about history that they cannot delete without holding up others."""
    figures = [each for each in engine.metrics.read() if each.name == "lodger_retention_too_slow"]
    left = int(sum(sample.value for each in figures for sample in each.samples))
    if not left:
        return Check("retention", "ok", "nothing left")
    why = "deleting one of these rows would hold locks for more than 100 ms, so old history stays and uses disk"
    fix = "relieve the database's disk and CPU, remove triggers on Lodger's tables, and see the node's log for the rows"
    return Check("retention", "warn", f"{left} rows left", why, fix)
