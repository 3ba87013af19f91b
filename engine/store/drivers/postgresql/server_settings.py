"""Settings of the server on which the safety of a commit depends, and the room for connections."""

from sqlalchemy import Connection, text

from lodger.engine.core.clock import SystemClock
from lodger.engine.store.drivers.features import Check
from lodger.engine.store.drivers.sql_files import clauses_of

_clock = SystemClock()

#: Round trips that are measured, of which the quickest counts, and from how many milliseconds on a server is far away.
TRIPS, FAR_MS = 5, 5.0
#: Part of the connections that may be in use before it is a warning.
BUSY = 0.8
_SQL = clauses_of(__file__)


def check(connection: Connection) -> list[Check]:
    """Return the checks of this server and database."""
    found = {row.name: row.setting for row in connection.execute(_SQL["settings"])}
    state = connection.execute(_SQL["state"]).one()
    checks = [Check("server version", "ok", found["server_version"])]
    if (trip_ms := _trip_ms(connection)) >= FAR_MS:
        why = "each tick, claim and commit of a node takes up to three round trips, and each read of a script one"
        fix = "run nodes and API in the network of the database server"
        checks.append(Check("distance", "warn", f"{trip_ms:.0f} ms a round trip", why, fix))
    for name in ("fsync", "full_page_writes"):
        why, fix = "a crash of the machine can damage the database", f"set {name} = on in postgresql.conf"
        checks.append(Check.of(name, found[name], why, fix, ok=found[name] == "on"))
    commit = found["synchronous_commit"]
    why = "a crash of the server can undo the last commits, and their runs are repeated"
    fix = "set synchronous_commit = on"
    checks.append(Check.of("synchronous_commit", commit, why, fix, ok=commit != "off", state="warn"))
    why, fix = "the server is a standby, which refuses writes", "let LODGER_DATABASE name the primary"
    checks.append(Check.of("primary", "standby" if state.standby else "primary", why, fix, ok=not state.standby))
    room = int(found["max_connections"]) - int(found["superuser_reserved_connections"])
    why = "new nodes and API processes may be refused"
    fix = "raise max_connections, or put a pooler before the server"
    used = f"{state.used} of {room}"
    checks.append(Check.of("connections", used, why, fix, ok=state.used <= BUSY * room, state="warn"))
    return checks


def _trip_ms(connection: Connection) -> float:
    """Return the shortest of a few round trips to the server, milliseconds."""
    times = []
    for _ in range(TRIPS):
        begun_s = _clock.elapsed_s()
        connection.execute(text("SELECT 1")).scalar()
        times.append(_clock.elapsed_s() - begun_s)
    return min(times) * 1000
