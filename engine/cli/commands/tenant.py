"""``lodger tenant``: customers of the platform."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.core.progress import report_progress_to
from lodger.engine.output import views
from lodger.engine.output.progress import bar
from lodger.engine.output.result_output import AsJson, Database, TenantId, say, write_json
from lodger.engine.service.archive.export import MAX_BYTES
from lodger.engine.workbench import script_files

app = typer.Typer(
    name="tenant",
    help="Manage tenants: customers of the platform, with their own scripts and data.",
    no_args_is_help=True,
)


@app.command()
def show(tenant: TenantId, db: Database = None, as_json: AsJson = False) -> None:
    """Show one tenant: state, limits, grants and people."""
    with opened(db) as engine:
        found = engine.tenants.get(tenant)
        held = engine.grants.list(tenant)
    if as_json:
        write_json(
            {"id": found.id, "name": found.name, "state": found.state, "limits": found.limits, "grants": held,
             "people": found.people, "created_at": found.created_at}
        )  # fmt: skip
        return
    say(f"{found.id}: {found.name}, {found.state}")
    say("limits  " + (", ".join(f"{name} {value}" for name, value in sorted(found.limits.items())) or "the defaults"))
    say("grants  " + " ".join(held))
    say("people  " + (", ".join(found.people) or "none"))


@app.command()
def export(
    tenant: TenantId,
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Path of the archive; - writes to stdout.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Export a suspended tenant to one file, for lodger tenant restore elsewhere."""
    with (
        opened(db) as engine,
        bar(f"exporting {tenant}", "rows", as_json=as_json) as progress,
        report_progress_to(progress),
    ):
        archive = engine.tenants.export(tenant)
    if not write_whole(out, archive):
        return
    if as_json:
        write_json({"bytes": len(archive)})
    else:
        say(f"{len(archive)} bytes; tokens, URLs, shadows and unread changes of feeds are not included")


@app.command()
def restore(
    tenant: TenantId,
    file: Annotated[Path, typer.Argument(help="Archive that lodger tenant export wrote; - reads stdin.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Restore a tenant from an archive, suspended; lodger tenant resume resumes it."""
    content = script_files.source(file, maximum=MAX_BYTES)
    with (
        opened(db) as engine,
        bar(f"restoring {tenant}", "rows", as_json=as_json) as progress,
        report_progress_to(progress),
    ):
        made = engine.tenants.restore(tenant, content)
    if as_json:
        write_json(made)
    else:
        views.tenant(made)


def write_whole(place: str, content: bytes) -> bool:
    """Write a file whole or not at all, readable by its owner only; ``-`` is stdout. Return whether it is a file.

    Raises:
        OSError: the disk is full, or the permission missing; an existing file is unchanged.
    """
    if place == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return False
    path = Path(place)
    if path.exists() and not path.is_file():  # a device or a pipe is no place for another file beside it
        path.write_bytes(content)
        return True
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return True
