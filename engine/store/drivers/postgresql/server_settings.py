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
        checks.append(Check(name, "ok", "on") if found[name] == "on" else Check(name, "fail", found[name], why, fix))
    commit = found["synchronous_commit"]
    why = "a crash of the server can undo the last commits, and their runs are repeated"
    if commit == "off":
        checks.append(Check("synchronous_commit", "warn", commit, why, "set synchronous_commit = on"))
    else:
        checks.append(Check("synchronous_commit", "ok", commit))
    if state.standby:
        why, fix = "the server is a standby, which refuses writes", "let LODGER_DATABASE name the primary"
        checks.append(Check("primary", "fail", "standby", why, fix))
    else:
        checks.append(Check("primary", "ok", "primary"))
    room = int(found["max_connections"]) - int(found["superuser_reserved_connections"])
    used = f"{state.used} of {room}"
    if state.used > BUSY * room:
        why, fix = (
            "new nodes and API processes may be refused",
            "raise max_connections, or put a pooler before the server",
        )
        checks.append(Check("connections", "warn", used, why, fix))
    else:
        checks.append(Check("connections", "ok", used))
    return checks


def _trip_ms(connection: Connection) -> float:
    """Return the shortest of a few round trips to the server, milliseconds."""
    times = []
    for _ in range(TRIPS):
        begun_s = _clock.elapsed_s()
        connection.execute(text("SELECT 1")).scalar()
        times.append(_clock.elapsed_s() - begun_s)
    return min(times) * 1000
