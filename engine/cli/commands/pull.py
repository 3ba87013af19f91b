"""``lodger pull``: writes a tenant's scripts and schedules into a folder, so that a deployment right after has nothing to do."""

from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.cli.operations import confirm
from lodger.engine.output import script_files
from lodger.engine.output.result_output import Database, TenantId, Yes, say, write_result
from lodger.engine.workbench import schedules_file, script_folder
from lodger.engine.workbench.pull import new_file, read_scripts, table_of


def pull(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write to; created if it does not exist.")],
    tenant: TenantId,
    yes: Yes = False,
    db: Database = None,
) -> None:
    """Write a tenant's scripts and schedules into a folder."""
    with opened(db) as engine:
        files, scripts, left_out = read_scripts(engine, tenant)
        schedules = {each.name: table_of(each) for each in engine.schedules.list(tenant)}
    written = {path: text for path, text in files.items() if _present(folder / path) != text}
    file = new_file(folder, schedules, scripts)
    if file is not None:
        written[schedules_file.NAME] = file.encode()
    if replaced := [path for path in written if (folder / path).exists()]:
        more = " …" if len(replaced) > 5 else ""
        confirm(f"replace {', '.join(replaced[:5])}{more} in {folder}", {}, yes=yes)
    for path, text in written.items():
        script_files.put(folder, path, text)
    there = script_folder.read(folder).scripts if folder.is_dir() else {}
    others = [name for name in there if not any(path.startswith((f"{name}/", f"{name}.")) for path in files)]
    write_result({"folder": str(folder), "written": list(written), "left_out": left_out, "others": others})
    for path in written:
        say(f"written: {path}")
    for name, reason in left_out.items():
        say(f"left out: script {name}: {reason}")
    for name in others:
        say(f"only in the folder: script {name}")
    if not written:
        say("nothing to do")


def _present(path: Path) -> bytes | None:
    """Return the content of a file; None if there is no such file, or if it is a link."""
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None
