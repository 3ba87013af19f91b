"""``lodger batch import``: create the tenants, scripts and schedules of a file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from lodger.engine.core.errors import InputError
from lodger.engine.output import groups
from lodger.engine.output.files import read_whole
from lodger.engine.output.progress import bar
from lodger.engine.output.result_output import Database, say, write_result
from lodger.sandbox import prescan

#: Maximum size of a file, and number of objects and of characters of one batch: what a server takes by default, and stores in a second.
MAX_BYTES, PART, PART_CHARACTERS = 1 << 30, 500, 512 * 1024
_KINDS = ("tenants", "scripts", "schedules")


def _parts(given: dict[str, Any]) -> Iterator[dict[str, list[Any]]]:
    """Yield the parts of a file in which it is sent: tenants come before scripts, and these before schedules."""
    part: dict[str, list[Any]] = {}
    count = size = 0
    for kind in _KINDS:
        for item in given.get(kind, []):
            length = len(json.dumps(item))
            if count == PART or (count and size + length > PART_CHARACTERS):
                yield part
                part, count, size = {}, 0, 0
            part.setdefault(kind, []).append(item)
            count, size = count + 1, size + length
    if part:
        yield part


def _read(file: Path) -> dict[str, Any]:
    """Return the content of a batch's file; raises InputError (batch_file_invalid)."""
    try:
        content = read_whole(file, maximum=MAX_BYTES)
        given = prescan.decode(content.decode(json.detect_encoding(content)))
    except ValueError as error:
        raise InputError("batch_file_invalid", file=str(file), reason=error.__cause__ or error) from None
    if (
        not isinstance(given, dict)
        or set(given) - set(_KINDS)
        or not all(isinstance(each, list) for each in given.values())
    ):
        raise InputError("batch_file_invalid", file=str(file), reason="it is no object of lists")
    return given


def _of_file(error: InputError, before: dict[str, int], done: int) -> InputError:
    """Return the refusal of a later part with the positions of the file, and what is stored of it already."""
    refused = []
    for each in error.details["refused"]:
        kind, position = each["kind"], before[each["kind"]] + each["position"]
        told = each["message"].replace(f"{kind}[{each['position']}] of the batch", f"{kind}[{position}] of the file")
        refused.append(each | {"position": position, "message": told})
    first = f"{refused[0]['kind']}[{refused[0]['position']}]: {refused[0]['message']}"
    count = error.details["count"]
    return InputError(
        "batch_refused.part", count=count, done=done, first=first, details={"refused": refused, "count": count}
    )


def _add(app: typer.Typer, opened: groups.Opened) -> None:
    """Add the commands of batches to the command line."""

    @app.command("import")
    def import_(
        file: Annotated[
            Path, typer.Argument(help='JSON: {"tenants": […], "scripts": […], "schedules": […]}; - reads stdin.')
        ],
        keep: Annotated[
            bool, typer.Option("--keep", help="Leave existing objects alone: an interrupted import can be repeated.")
        ] = False,
        db: Database = None,
    ) -> None:
        """Create the tenants, scripts and schedules of a file; 500 of them at most in one transaction."""
        given = _read(file)
        total = dict.fromkeys((*_KINDS, "kept", "unchecked"), 0)
        with opened(db, creates=True) as engine, bar("importing", "objects") as progress:
            done, before = 0, dict.fromkeys(_KINDS, 0)
            for part in _parts(given):
                try:
                    made = engine.batches.create(**part, keep=keep)
                except InputError as error:
                    raise (_of_file(error, before, done) if done and error.code == "batch_refused" else error) from None
                for name in total:
                    total[name] += getattr(made, name)
                done += sum(map(len, part.values()))
                before |= {kind: before[kind] + len(items) for kind, items in part.items()}
                progress(done)
        write_result(total)
        say(", ".join(f"{number} {name}" for name, number in total.items()))


groups.HELP["batch"] = "Create many tenants, scripts and schedules at once."
groups.COMMANDS["batch"].append(_add)
