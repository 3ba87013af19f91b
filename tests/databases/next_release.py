"""The next release: a copy of this tree with one more migration, which adds a column, or takes something away."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from lodger.engine.store.migrations.revision import head

ROOT = Path(__file__).resolve().parents[2]
REVISION = "9001"
SENTENCE = "Of the next release."
_VERSIONS = "engine/store/migrations/versions"
_MIGRATION = '''"""{sentence}"""

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{after}"
branch_labels = None
depends_on = None
{compatible}

def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("lodger_nodes", sa.Column("{column}", sa.Text(), server_default="", nullable=False))
'''


def next_release(folder: Path, compatible_with: str | None = None) -> Path:
    """Return the tree of the next release; with ``compatible_with`` its migration takes something away."""
    for name in ("lodger", "engine"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, copy_function=_link)
    for name in ("sandbox", "stdlib", "escape", "bench", "tests"):
        (folder / name).symlink_to(ROOT / name)
    return advanced(folder, compatible_with)


def _link(source: str, target: str) -> None:
    """Put a file into another folder; one that is written there is to be removed first."""
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def advanced(folder: Path, compatible_with: str | None = None) -> Path:
    """Make the next release of a tree in its place, and return it."""
    write_migration(folder, REVISION, head(), "next", compatible_with)
    nodes = folder / "engine/store/schema/nodes.py"
    slots = '    Column("slots", Integer'
    changed = nodes.read_text().replace(
        slots, f'    Column("next", Text, nullable=False, server_default=""),\n{slots}', 1
    )
    nodes.unlink()
    nodes.write_text(changed)
    return folder


def write_migration(tree: Path, revision: str, after: str, column: str, compatible_with: str | None = None) -> None:
    """Add a migration to a tree."""
    line = f'compatible_with = "{compatible_with}"\n' if compatible_with else ""
    written = _MIGRATION.format(revision=revision, after=after, sentence=SENTENCE, compatible=line, column=column)
    (tree / _VERSIONS / f"{revision}_next.py").write_text(written)


def environment(tree: Path) -> dict[str, str]:
    """Return the environment of processes of a tree."""
    return os.environ | {"PYTHONPATH": str(tree)}


def python(tree: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python with the packages of a tree."""
    given = {"cwd": tree, "env": environment(tree), "capture_output": True, "text": True, "timeout": 400}
    return subprocess.run([sys.executable, *arguments], check=False, **given)  # type: ignore[call-overload]  # as a mapping


def lodger(tree: Path, *arguments: str) -> Any:
    """Run a command of a tree; return its JSON and its exit code."""
    return lodger_commands(tree, arguments)[0]


#: Importing is most of what a command costs: one process carries out several, and prints a line for each.
_COMMANDS = """
import contextlib, io, json, sys
from lodger.engine.cli.entry import run
for arguments in json.loads(sys.argv[1]):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run([*arguments, "--json"])
    print(json.dumps(json.loads(out.getvalue()) | {"code": code}))
"""


def lodger_commands(tree: Path, *commands: tuple[str, ...]) -> list[Any]:
    """Run commands of a tree one after the other; return the JSON of each and its exit code."""
    done = python(tree, "-c", _COMMANDS, json.dumps(commands))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
