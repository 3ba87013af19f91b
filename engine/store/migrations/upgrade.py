"""Upgrades a database to this version's schema, without an alembic.ini or a working directory."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.migrations.revision import VERSION_TABLE, Progress, current, ignore_progress, known


@cache
def tree() -> ScriptDirectory:
    """Return the packaged revisions, read only once: reading them is most of the cost of opening a current ledger."""
    config = Config()
    # Not by Alembic's configuration, which would interpolate a percent sign in the path.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    scripts.get_current_head()  # reads the files now, so that concurrent threads need not
    return scripts


def upgrade(connection: Connection, progress: Progress = ignore_progress, *, to: str = "head") -> None:
    """Upgrade to a revision inside the caller's transaction; an empty database is set up, a current one is left unchanged.

    Raises:
        Unavailable: database_newer, if the database was written by a later Lodger.
    """
    scripts, at = tree(), current(connection)
    if at == scripts.get_current_head() and to == "head":
        return
    _known(scripts, at)
    steps = [script for script in reversed(list(scripts.iterate_revisions(to, at or "base"))) if script]
    for number, script in enumerate(steps, 1):
        progress(script.revision, script.doc, number, len(steps))
        _run(
            connection,
            scripts,
            lambda rev, _context, target=script.revision: scripts._upgrade_revs(target, rev),
        )


def downgrade(connection: Connection, to: str = "base") -> None:
    """Downgrade to a revision inside the caller's transaction."""
    scripts = tree()
    _known(scripts, current(connection))
    _run(connection, scripts, lambda rev, _context: scripts._downgrade_revs(to, rev))


def _known(scripts: ScriptDirectory, at: str | None) -> None:
    if at is None or at in known():
        return
    raise Unavailable(
        "database_newer",
        f"the database has schema revision {at}, this version of Lodger knows none later than {scripts.get_current_head()}",
        why="a later version of Lodger has upgraded it",
        fix="run that version or a later one; Lodger never downgrades a schema",
    )


def _run(connection: Connection, scripts: ScriptDirectory, revisions: Callable[..., object]) -> None:
    config = Config(attributes={"connection": connection, "version_table": VERSION_TABLE})
    with EnvironmentContext(config, scripts, fn=revisions):
        scripts.run_env()
