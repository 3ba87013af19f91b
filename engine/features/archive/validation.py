"""Validation of the rows of an archive before they are stored: pure, one row at a time.

Values must have the types of their columns, within bounds; the size of JSON is checked before it is parsed; and columns
that are later read for all tenants at once are decoded here first.
"""

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, NamedTuple, NoReturn

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt, TypeAdapter, ValidationError
from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary, Numeric, SmallInteger, String, Table

from lodger.engine.core.access import names
from lodger.engine.core.access.origins import parse_origin
from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import is_id
from lodger.engine.core.params import read_fields
from lodger.engine.data.sets.expose import NAME
from lodger.engine.data.values.fields import PATH
from lodger.engine.store.drivers.expressions import Id
from lodger.engine.store.schema.metadata import ARCHIVED
from lodger.engine.store.schema.scheduling import MAX_PACKED_BYTES
from lodger.engine.store.scripts.content import check_file_name
from lodger.engine.store.stored_modules import authored, used
from lodger.engine.store.tenants.grants import encode
from lodger.sandbox.job import ScriptError
from lodger.sandbox.limits import LIMITS
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.prescan import require

Row = dict[str, Any]
#: Maximum number of values and nesting of a line: a row is a list of values.
LINE_VALUES, LINE_DEPTH = 300, 3
#: Maximum number of values and nesting of the JSON in a column: more than the limits of a script allow.
CELL_VALUES, CELL_DEPTH = 2_500_000, 16 + next(each.maximum for each in LIMITS if each.name == "json_depth")
#: Instants of the years 1 to 9999, microseconds: the bounds of all integers in an archive.
MIN_US, MAX_US = -62_135_596_800_000_000, 253_402_300_800_000_000
#: Maximum values of counters, far below the maximum of their columns.
MAX_COUNTED, MAX_COUNTED_SMALL = 2**30, 2**14
#: The only counter that may be negative.
_SIGNED = {"priority"}
#: States of an action that may still start.
OPEN = ("ready", "waiting_retry")
#: Columns that contain JSON text.
JSON = {
    "params", "handed", "steps", "result", "error", "effects", "lines", "body", "value", "modules", "grants", "fields", "rules",
    "retry", "conduct", "limits", "hosts", "events", "kinds", "mail", "webhooks", "quiet", "payload", "before", "after", "answer",
    "people",
}  # fmt: skip


def bad(why: str) -> InputError:
    """Return the error for an invalid archive."""
    return InputError("archive_invalid", reason=why)


def parsed(line: bytes) -> Any:
    """Parse a line; its nesting is bounded, so that its length bounds the memory it takes."""
    return _decoded(line, LINE_DEPTH, LINE_VALUES, "a line")


def read(table: Table, cells: list[Any]) -> Row:
    """Check the values of a row and return it as a dictionary.

    Raises:
        InputError: archive_invalid.
    """
    form = _form(table)
    try:
        row = dict(zip(form.columns, form.cells.validate_python(cells), strict=True))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join((table.name, *(form.columns[int(at)] for at in first["loc"][:1])))
        raise bad(f"{place}: {first['msg']}") from None
    parsed = {name: parse_cell(table, name, row[name]) for name in form.json if row[name] is not None}
    try:
        for name in parsed.keys() & form.shapes:
            form.shapes[name].validate_python(parsed[name])
        if form.look is not None:
            form.look(row, parsed)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, zlib.error, InputError) as error:
        raise bad(f"a row of {table.name} cannot be read") from error
    return row


def parse_cell(table: Table, name: str, text: str) -> Any:
    """Return the JSON value of a column, within its bounds of depth and size.

    Raises:
        InputError: archive_invalid.
    """
    return _decoded(text.encode("utf-8", "surrogatepass"), CELL_DEPTH, CELL_VALUES, f"{table.name}.{name}")


def _decoded(text: bytes, max_depth: int, max_values: int, place: str) -> Any:
    """Return a JSON value of bounded nesting and size."""
    try:
        if len(text) > _SHORT or text.count(b"[") + text.count(b"{") > CELL_DEPTH:
            require(text, max_depth=max_depth, max_values=max_values)
        return _JSON.decode(text.decode())
    except (ValueError, RecursionError):
        raise bad(f"{place} is not JSON, or is too large") from None


def _constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity."""
    raise ValueError(f"{name} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_constant)
#: Shorter JSON is parsed without a check of its size.
_SHORT = 16 * 1024
#: Texts that databases store: without NUL; with a pattern, lone surrogates are refused too.
_KEPT = r"^[^\x00]*$"


class _Form(NamedTuple):
    """The form of a table's rows: names and values of the columns, those with JSON, and the check of the whole row."""

    columns: tuple[str, ...]
    cells: TypeAdapter[Any]
    json: tuple[str, ...]
    shapes: Mapping[str, TypeAdapter[Any]]
    look: Callable[[Row, Row], None] | None


@cache
def _form(table: Table) -> _Form:
    """Return the form of a table's rows in an archive."""
    columns = tuple(column.name for column in table.c)
    cells: Any = GenericAlias(tuple, tuple(map(_cell, table.c)))
    texts = {column.name for column in table.c if isinstance(column.type, String)}
    parsed = tuple(name for name in columns if name in JSON & texts)
    return _Form(
        columns,
        TypeAdapter(cells),
        parsed,
        _SHAPES.get(table.name, {}),
        _ROW_CHECKS.get(table.name) or table.info.get(ARCHIVED),
    )


def _cell(column: Column[Any]) -> Any:
    """Return the form of a column's values."""
    kind = column.type
    form: Any
    if isinstance(kind, LargeBinary):
        form = Annotated[bytes, BeforeValidator(_bytes)]
    elif isinstance(kind, Integer):
        minimum, maximum = _bounds(column.name, kind)
        form = Annotated[int, Field(strict=True, ge=minimum, lt=maximum)]
    elif isinstance(kind, Numeric | Float):
        form = Annotated[float, Field(strict=True, allow_inf_nan=False)]
    elif kind is Id:
        form = Annotated[str, AfterValidator(_id)]
    else:
        assert isinstance(kind, String)
        form = Annotated[str, Field(strict=True, max_length=kind.length, pattern=_KEPT)]
    return form | None if column.nullable else form


def _id(text: str) -> str:
    """Return a text that is an id."""
    if not is_id(text):
        raise ValueError("it is not an id")
    return text


def _bytes(cell: Any) -> bytes:
    """Return the bytes of a cell of an archive, ``{"b64": …}``."""
    try:
        return base64.b64decode(cell["b64"], validate=True)
    except (TypeError, KeyError, ValueError):
        raise ValueError("it is not base64") from None


def _bounds(name: str, kind: Integer) -> tuple[int, int]:
    """Return the minimum and the exclusive maximum of an integer column: instants, or counters below the column's maximum."""
    if isinstance(kind, BigInteger):
        return MIN_US, MAX_US
    maximum = MAX_COUNTED_SMALL if isinstance(kind, SmallInteger) else MAX_COUNTED
    return (-maximum if name in _SIGNED else 0), maximum


def _check_script(row: Row, _cells: Row) -> None:
    """Check the name of a script."""
    names.check_path_part(row["name"], "archive_invalid.name")


def _check_version(_row: Row, cells: Row) -> None:
    """Check the files, used scripts and typed params of a script version."""
    for file in authored(cells["modules"]):
        check_file_name(file)
    if not all(type(version) is int for version in used(cells["modules"]).values()):
        raise TypeError("the versions of used scripts must be numbers")
    read_fields(cells.get("fields"))
    encode(cells.get("grants"))


def _check_schedule(row: Row, _cells: Row) -> None:
    """Check the name of a schedule."""
    names.check(row["name"], "archive_invalid.name")


def _check_action(row: Row, cells: Row) -> None:
    """Check the outcome of an action, and that an unfinished one can run."""
    _check_outcome(row, cells)
    if row["state"] in OPEN:
        steps = cells.get("steps")
        if (row["schedule_id"] is None) != (row["revision"] is None) or row["script_id"] is None:
            raise ValueError("an unfinished action needs a script, and a revision if it has a schedule")
        if not 0 <= row["step"] < (1 if steps is None else len(steps)):
            raise IndexError("step is out of range")


def _check_outcome(row: Row, cells: Row) -> None:
    """Check outcome and error of an action or an attempt."""
    if row["outcome"] is not None:
        Outcome(row["outcome"])
    if cells.get("error") is not None:
        ScriptError(**cells["error"])


def _check_record(row: Row, _cells: Row) -> None:
    """Check the size of an attempt's record; its content is checked when it is read."""
    if len(row["body"]) > MAX_PACKED_BYTES:
        raise ValueError("the record of an attempt is too large")


def _check_message(row: Row, cells: Row) -> None:
    """Check the payload of an outbox message."""
    payload = cells["payload"]
    if row["kind"] == "webhook":
        texts, _ = [payload["type"]], payload["data"]
    elif row["kind"] == "mail":
        bodies = [payload.get(name) for name in ("text", "html", "replyTo", "senderName")]
        texts = [*payload["to"], *payload.get("cc", ()), *payload.get("bcc", ()), payload["subject"]]
        texts += [each for each in bodies if each is not None]
        texts += payload.get("names", {}).values()
        texts += [file[part] for file in payload.get("attachments", ()) for part in ("name", "type", "base64")]
        if not isinstance(payload["to"], list) or not payload["to"]:
            raise TypeError("a mail needs a recipient")
    else:
        raise ValueError("unknown kind of message")
    if not all(isinstance(each, str) for each in texts):
        raise TypeError("fields of a message must be text")


def _check_secret(_row: Row, cells: Row) -> None:
    """Check the hosts of a secret."""
    for each in cells["hosts"]:
        parse_origin(each)


def _check_index(row: Row, _cells: Row) -> None:
    """Check collection and path of a collection's index."""
    if not NAME.fullmatch(row["collection"]) or not PATH.fullmatch(row["path"]):
        raise ValueError("invalid path of a collection")


def check_response_size(body: bytes, maximum: int) -> None:
    """Check that a stored response has at most so many bytes.

    Raises:
        InputError: archive_invalid.
    """
    opened = zlib.decompressobj()
    try:
        size = len(opened.decompress(body, maximum + 1))
    except zlib.error as error:
        raise bad("the body of a stored response cannot be decompressed") from error
    if not opened.eof or opened.unused_data or size > maximum:
        raise bad(f"the body of a stored response is cut off, or has more than {maximum} bytes (egress_max_mib)")


_TEXTS = TypeAdapter(list[str])
#: Forms of the JSON in columns.
_SHAPES: dict[str, dict[str, TypeAdapter[Any]]] = {
    "lodger_tenants": {"limits": TypeAdapter(dict[str, Any]), "grants": _TEXTS, "people": _TEXTS},
    "lodger_schedule_revisions": {"steps": TypeAdapter(list[dict[str, Any]])},
    "lodger_actions": {"steps": TypeAdapter(list[tuple[str, StrictInt]])},
    "lodger_script_versions": {"modules": TypeAdapter(dict[str, str]), "grants": _TEXTS},
    "lodger_attempts": {"effects": TypeAdapter(list[dict[str, Any]])},
    "lodger_attempt_logs": {
        "lines": TypeAdapter(list[tuple[str, str, Annotated[StrictInt, Field(ge=MIN_US, lt=MAX_US)]]])
    },
    "lodger_documents": {"body": TypeAdapter(dict[str, Any])},
    "lodger_fetches": {"answer": TypeAdapter(tuple[StrictInt, str, str, list[tuple[str, str]], StrictBool])},
}
_ROW_CHECKS: dict[str, Callable[[Row, Row], None]] = {
    "lodger_scripts": _check_script,
    "lodger_script_versions": _check_version,
    "lodger_schedules": _check_schedule,
    "lodger_actions": _check_action,
    "lodger_attempts": _check_outcome,
    "lodger_attempt_records": _check_record,
    "lodger_outbox": _check_message,
    "lodger_secrets": _check_secret,
    "lodger_collection_indexes": _check_index,
}
