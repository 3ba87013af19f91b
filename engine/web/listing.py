"""Lists on pages: filtered, sorted, counted and paged by the operations of a noun, and exported as a file."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from math import inf
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import NotFound
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.service.bulk import Matched
from lodger.engine.web.page import PAGE, Reader, Values

#: Most entries of a file, and entries that are read at once for it.
MAX_EXPORTED, EXPORTED_AT_ONCE, MAX_LISTED = 100_000, 1000, 10_000
#: Operations that list a noun, where it is not its verb ``list``.
OPERATIONS = {"tenants": "tenants.activity"}
#: Words for the entries of a list, where they are not its noun.
WORDS = {"audit": "changes"}
#: Query parameters of a list that are no part of its filter.
_PLACE = ("cursor", "trail", "format")


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a list.

    Attributes:
        filter: the text that the whole list is filtered by, with the terms of a page's other fields.
        count: number of entries that match.
        first: number of the first entry shown, from 1.
        previous, next: queries of the pages beside it, None where there is none.
        files: the operation of the list, with its arguments.
    """

    noun: str
    entries: Any
    filter: str
    count: Matched
    first: int
    query: Values
    previous: str | None
    next: str | None
    files: tuple[str, Values]

    @property
    def is_whole(self) -> bool:
        """Whether the number of each entry is known, and the page shows some of them."""
        return self.count.complete and self.count.count > len(self.entries)

    @property
    def is_part(self) -> bool:
        """Whether the page ends where the database has looked at enough, not because it is full."""
        return self.next is not None and len(self.entries) < PAGE

    def sorted_by(self, name: str) -> str:
        """Return the query of the list in an order, the other way round if it is in this order already."""
        text = str(self.query.get("filter", ""))
        falls = re.search(rf"(?:^|\s)sort:{name}(?:\s|$)", text) is not None
        rest = re.sub(r"(?:^|\s)sort:\S+", "", text).strip()
        return "?" + urlencode(self.query | {"filter": f"{rest} sort:{'-' if falls else ''}{name}".strip()})


def in_order(reader: Reader, entries: Iterable[Any]) -> list[Any]:
    """Return the entries of a list without pages in the order of the query's ``sort``: a field, falling after ``-``; dots lead to
    fields of a field. Entries without a value come last."""
    order = reader.request.query_params.get("sort", "")
    if not order:
        return list(entries)
    path = order.removeprefix("-").split(".")
    rows = [(_value(to_jsonable(each) if is_dataclass(each) else {"value": each}, path), each) for each in entries]
    known = sorted((row for row in rows if row[0]), key=itemgetter(0), reverse=order.startswith("-"))
    return [each for _key, each in [*known, *(row for row in rows if not row[0])]]


def _value(record: Any, path: list[str]) -> tuple[float, str] | tuple[()]:
    """Return a value of a record in a form that any two values can be compared in; nothing without one."""
    for name in path:
        record = record.get(name) if isinstance(record, dict) else None
    if record is None or record == []:
        return ()
    is_number = isinstance(record, int | float)
    return (record, "") if is_number else (inf, record if isinstance(record, str) else json.dumps(record))


def term(field: str, value: str) -> str:
    """Return a term of a filter: a field and its quoted value."""
    return f"{field}:{json.dumps(value, ensure_ascii=False)}"


def listing(reader: Reader, noun: str, fields: Iterable[str] = (), asked: Values | None = None) -> Listing:
    """Return one page of the list of a noun.

    Args:
        fields: names of the page's fields beside its filter, each a field of the filter.
        asked: arguments of a list without a filter.

    Raises:
        InputError: filter_invalid, cursor_invalid.
    """
    query = dict(reader.request.query_params)
    terms = (term(name, value) for name, value in reader.chosen(*fields).items())
    text = " ".join([*reader.chosen("filter").values(), *terms])
    asked = ({} if noun == "tenants" else reader.tenant) | ({"filter": text} if asked is None else asked)
    operation = OPERATIONS.get(noun, f"{noun}.list")
    cursor, trail = query.get("cursor"), [each for each in query.get("trail", "").split("~") if each]
    kept = {name: value for name, value in query.items() if name not in _PLACE and value}
    counts = {name: value for name, value in asked.items() if name != "oldest"}
    known: list[Any] = []

    def read_entries() -> None:
        """Read the page of the list."""
        at = {"cursor": cursor} if cursor else {}
        known.append(reader.ask(operation, **asked, limit=PAGE, **at))

    def count_matches() -> Any:
        """Count all matches, unless the page shows the whole list."""
        # A server is asked before it is known whether all are on the page.
        return reader.ask(f"{noun}.count", **counts) if cursor or not known or known[0].next else None

    _, count = reader.together(read_entries, count_matches)
    (found,) = known
    here = [*trail, cursor] if cursor else []
    first = len(here) * PAGE + 1
    if not (cursor or found.next):
        count = Matched(len(found), complete=True)
    previous = None
    if cursor:
        before = {"cursor": trail[-1], "trail": "~".join(trail[:-1])} if trail else {}
        previous = "?" + urlencode(kept | before)
    following = "?" + urlencode(kept | {"cursor": found.next, "trail": "~".join(here)}) if found.next else None
    word, files = WORDS.get(noun, noun), (operation, asked)
    return Listing(word, found, asked.get("filter", ""), count, first, kept, previous, following, files)


def exported(reader: Reader, values: Values, form: str) -> Response:
    """Return everything that the list of a page has as a file: JSON, or CSV with one column for each field.

    Args:
        values: of the page: its list, or its operation and arguments as ``files``.

    Raises:
        NotFound: operation_unknown, of a page without a list.
    """
    found = values["listed"].files if "listed" in values else values.get("files")
    if found is None:
        raise NotFound("operation_unknown", name=reader.request.url.path.rpartition("/")[2])
    operation, asked = found
    known = {each.name for route in reader.table.routes if route.name == operation for each in route.parameters}
    at_once = {"limit": EXPORTED_AT_ONCE if "cursor" in known else MAX_LISTED} if "limit" in known else {}
    noun, _dot, verb = operation.partition(".")
    name = noun if verb in {"list", "activity"} else f"{noun}-{verb}"
    entries: list[Any] = []
    cursor: Values = {}
    while len(entries) < MAX_EXPORTED:
        page = reader.ask(operation, **{**asked, **at_once, **cursor})
        if form == "log" and operation != "actions.logs":
            raise NotFound("operation_unknown", name=operation)
        entries += page
        following = getattr(page, "next", None)
        if following is None:
            break
        cursor = {"cursor": following}
    else:
        name = f"{name}-first-{MAX_EXPORTED}"
    headers = {"content-disposition": f'attachment; filename="{name}.{form}"'}
    if "cursor" not in known:
        entries = in_order(reader, entries)
    # A hundred thousand entries take seconds. They are encoded one by one: between two, other threads have their turn.
    encode, media = FORMS[form]
    return Response(encode(entries), headers=headers, media_type=media)


def _as_json(entries: list[Any]) -> bytes:
    """Return entries as a JSON array."""
    return f"[{','.join(json.dumps(to_jsonable(each)) for each in entries)}]".encode()


def _as_csv(entries: list[Any]) -> bytes:
    """Return entries as CSV, a column for each field that any of them has."""
    text, fields = io.StringIO(newline=""), [to_jsonable(each) for each in entries]
    columns = list(dict.fromkeys(name for each in fields for name in each))
    rows = csv.writer(text)
    rows.writerow(columns)
    rows.writerows([_cell(each.get(name)) for name in columns] for each in fields)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """Return a value for a cell of a CSV file."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # A spreadsheet takes what begins so for a formula.
    return f"'{text}" if isinstance(value, str) and text[:1] in {"=", "+", "-", "@", "\t", "\r"} else text


def _as_log(lines: list[Any]) -> bytes:
    """Return the lines of a log as text, each with its time and level."""
    times = (f"{from_us(each.us).isoformat()} " if each.us else "" for each in lines)
    return "".join(f"{time}{each.level} {each.text}\n" for time, each in zip(times, lines, strict=True)).encode()


#: Forms of files: how entries are encoded, and the media type.
FORMS: dict[str, tuple[Callable[[list[Any]], bytes], str]] = {
    "json": (_as_json, "application/json"),
    "csv": (_as_csv, "text/csv; charset=utf-8"),
    "log": (_as_log, "text/plain; charset=utf-8"),
}
