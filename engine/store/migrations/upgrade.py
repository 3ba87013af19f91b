"""Creates the schema of an empty database, and upgrades an older one, without an alembic.ini or a working directory."""

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, text

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.migrations import baseline
from lodger.engine.store.migrations.revision import (
    VERSION_TABLE,
    Progress,
    compatible_with,
    current,
    head,
    ignore_progress,
    known,
    require_usable,
)

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

_ALIVE = text(
    "SELECT name, schema_revision FROM lodger_nodes WHERE state = 'alive' AND lease_until_us > :now_us ORDER BY name"
)
_SET_COMPATIBLE = text("UPDATE lodger_ledger SET compatible_with = :revision")


class Step(NamedTuple):
    """One migration, with the first sentence of its docstring."""

    revision: str
    sentence: str


def pending(at: str | None) -> list[Step]:
    """Return the steps from a revision to this version's schema, oldest first; None for an empty database."""
    if at is None:
        return [Step(head(), baseline.SENTENCE)]
    if at == head():
        return []
    found = _tree().iterate_revisions("head", at)
    return [Step(script.revision, script.doc) for script in reversed(list(found)) if script]


def upgrade(connection: Connection, progress: Progress = ignore_progress, *, now_us: int | None = None) -> None:
    """Upgrade to this version's schema inside the caller's transaction; an empty database is set up, a current one is left unchanged.

    Args:
        now_us: the time of leases; None if no node can be at work.

    Raises:
        Unavailable: database_newer, if the database was written by a later Lodger; database_in_use, if nodes are at work that
            cannot use the new schema.
    """
    at = current(connection)
    if at is not None and at not in known():
        require_usable(connection, "newer")
    steps = pending(at)
    oldest = compatible_with([step.revision for step in steps])
    if at is not None and now_us is not None and oldest is not None:
        _refuse_older_nodes(connection, oldest, now_us)
    for number, step in enumerate(steps, 1):
        progress(step.revision, step.sentence, number, len(steps))
        if at is None:
            baseline.create(connection)
        else:
            _migrate(connection, step.revision)
    if at is not None and oldest is not None:
        connection.execute(_SET_COMPATIBLE, {"revision": oldest})


def _refuse_older_nodes(connection: Connection, oldest: str, now_us: int) -> None:
    """Refuse an upgrade that removes something which living nodes use."""
    usable = known()[known().index(oldest) :]
    older = [row.name for row in connection.execute(_ALIVE, {"now_us": now_us}) if row.schema_revision not in usable]
    if older:
        raise Unavailable("database_in_use", nodes=older, wanted=oldest)


def _tree() -> "ScriptDirectory":
    """Return the packaged revisions as Alembic reads them."""
    from pathlib import Path

    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    # Not by Alembic's configuration, which would interpolate a percent sign in the path.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return ScriptDirectory.from_config(config)


def _migrate(connection: Connection, revision: str) -> None:
    """Run the migrations up to a revision."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext

    tree = _tree()
    config = Config(attributes={"connection": connection, "version_table": VERSION_TABLE})
    with EnvironmentContext(config, tree, fn=lambda at, _context: tree._upgrade_revs(revision, at)):
        tree.run_env()
