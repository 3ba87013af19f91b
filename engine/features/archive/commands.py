"""``lodger tenant export`` and ``restore``."""

from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.core.errors import Usage
from lodger.engine.core.progress import report_progress_to
from lodger.engine.features.archive.export import MAX_BYTES
from lodger.engine.output import groups, views
from lodger.engine.output.files import read_whole, write_whole
from lodger.engine.output.progress import bar
from lodger.engine.output.result_output import Database, TenantId, say, write_result


def _add(app: typer.Typer, opened: groups.Opened) -> None:
    """Add the commands to the group of tenants."""

    @app.command()
    def export(
        tenant: TenantId,
        out: Annotated[str, typer.Option("--out", metavar="FILE", help="Path of the archive; - writes to stdout.")],
        force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
        db: Database = None,
    ) -> None:
        """Export a suspended tenant to one file, for lodger tenant restore elsewhere."""
        if Path(out).is_file() and not force:
            raise Usage("file_exists.archive", target=out)
        with (
            opened(db) as engine,
            bar(f"exporting {tenant}", "rows") as progress,
            report_progress_to(progress),
        ):
            archive = engine.tenants.export(tenant)
        if not write_whole(out, archive):
            return
        write_result({"bytes": len(archive)})
        say(f"{len(archive)} bytes; tokens, URLs, shadows and unread changes of feeds are not included")

    @app.command()
    def restore(
        tenant: TenantId,
        file: Annotated[Path, typer.Argument(help="Archive that lodger tenant export wrote; - reads stdin.")],
        of: Annotated[
            str | None,
            typer.Option("--of", metavar="TENANT", help="ID in the archive, to restore it under another one."),
        ] = None,
        db: Database = None,
    ) -> None:
        """Restore a tenant from an archive, suspended; lodger tenant resume resumes it."""
        content = read_whole(file, maximum=MAX_BYTES)
        with (
            opened(db, creates=True) as engine,
            bar(f"restoring {tenant}", "rows") as progress,
            report_progress_to(progress),
        ):
            made = engine.tenants.restore(tenant, content, of=of)
        write_result(made)
        views.tenant(made)


groups.COMMANDS["tenant"].append(_add)
