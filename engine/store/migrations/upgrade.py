"""Upgrades a database to this version's schema, without an alembic.ini or a working directory."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, text

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.migrations.revision import (
    VERSION_TABLE,
    Progress,
    compatibility,
    current,
    ignore_progress,
    known,
    require_usable,
)

#: The first revision that records the schema of each node and the compatibility of the ledger.
RECORDED = "0122"
_OLDER = text(
    "SELECT name, schema_revision FROM lodger_nodes WHERE state = 'alive' AND lease_until_us > :now_us ORDER BY name"
)
_SET_COMPATIBLE = text("UPDATE lodger_ledger SET compatible_with = :revision")


@cache
def tree() -> ScriptDirectory:
    """Return the packaged revisions, read only once: reading them is most of the cost of opening a current ledger."""
    config = Config()
    # Not by Alembic's configuration, which would interpolate a percent sign in the path.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    scripts.get_current_head()  # reads the files now, so that concurrent threads need not
    return scripts


def pending(at: str | None, to: str = "head") -> list[Script]:
    """Return the migrations between two revisions, oldest first."""
    return [script for script in reversed(list(tree().iterate_revisions(to, at or "base"))) if script]


def upgrade(
    connection: Connection, progress: Progress = ignore_progress, *, to: str = "head", now_us: int | None = None
) -> None:
    """Upgrade to a revision inside the caller's transaction; an empty database is set up, a current one is left unchanged.

    Args:
        now_us: the time of leases; None if no node can be at work.

    Raises:
        Unavailable: database_newer, if the database was written by a later Lodger; database_in_use, if nodes are at work that
            cannot use the new schema.
    """
    scripts, at = tree(), current(connection)
    if at == scripts.get_current_head() and to == "head":
        return
    if at is not None and at not in known():
        require_usable(connection, "newer")
    steps = pending(at, to)
    if now_us is not None and at is not None:
        _refuse_older_nodes(connection, at, steps, now_us)
    for number, script in enumerate(steps, 1):
        progress(script.revision, script.doc, number, len(steps))
        _run(
            connection,
            scripts,
            lambda rev, _context, target=script.revision: scripts._upgrade_revs(target, rev),
        )
        compatible = compatibility(script.revision)
        if compatible is not None:
            connection.execute(_SET_COMPATIBLE, {"revision": compatible})


def _refuse_older_nodes(connection: Connection, at: str, steps: list[Script], now_us: int) -> None:
    """Refuse to take away what living nodes use."""
    wanted = next((found for step in reversed(steps) if (found := compatibility(step.revision))), None)
    order = [script.revision for script in pending(None)]
    if wanted is None or order.index(at) < order.index(RECORDED):
        return
    minimum = order.index(wanted)
    older = [
        row.name
        for row in connection.execute(_OLDER, {"now_us": now_us})
        if (order.index(row.schema_revision) if row.schema_revision in order else order.index(RECORDED) - 1) < minimum
    ]
    if older:
        raise Unavailable(
            "database_in_use",
            f"nodes of an earlier release are running: {', '.join(older)}",
            why=f"the new schema works with releases with revision {wanted} or later",
            fix="stop them, or replace them with nodes of an intermediate release, and upgrade again",
        )


def downgrade(connection: Connection, to: str = "base") -> None:
    """Downgrade to a revision inside the caller's transaction."""
    at = current(connection)
    if at is not None and at not in known():
        require_usable(connection, "newer")
    _run(connection, tree(), lambda rev, _context: tree()._downgrade_revs(to, rev))


def _run(connection: Connection, scripts: ScriptDirectory, revisions: Callable[..., object]) -> None:
    config = Config(attributes={"connection": connection, "version_table": VERSION_TABLE})
    with EnvironmentContext(config, scripts, fn=revisions):
        scripts.run_env()
