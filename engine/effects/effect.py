"""Effects as plain values, and how they change a row."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from lodger.engine.core import strict_json
from lodger.engine.core.clock import from_us
from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.data.sets.dataset import Collection, Dataset, TableDataset
from lodger.engine.data.values import kinds
from lodger.engine.data.values.fields import PATH, PathField
from lodger.engine.data.values.kinds import Kind
from lodger.engine.data.values.stored import scaled

#: Keys that the database will generate are represented by integers from here downwards, inside the journal only. A
#: script's numbers can hold them, and real keys do not come near.
FIRST_TOKEN = -(2**53) + 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """Base of every effect: ``line`` is ``file:line`` of the call, None if unknown."""

    line: str | None = None


@dataclass(frozen=True, slots=True)
class Insert(Requested):
    """A new row; ``row`` is canonical and has the key, ``given`` names the columns that the script set (None: all).

    ``token``: the key is a token for one that the database will generate. ``upsert``: an existing row is a conflict,
    not a refusal; the repeated run updates it.
    """

    rows: Dataset
    key: Any
    row: Row
    given: frozenset[str] | None = None
    token: bool = False
    upsert: bool = False


@dataclass(frozen=True, slots=True)
class Update(Requested):
    """New values of some columns, or of some top-level fields of a document."""

    rows: Dataset
    key: Any
    changes: Row


@dataclass(frozen=True, slots=True)
class Increment(Requested):
    """Amounts added to the row's present values, so that increments of concurrent attempts all count."""

    rows: Dataset
    key: Any
    amounts: Row


@dataclass(frozen=True, slots=True)
class Delete(Requested):
    """A deleted row."""

    rows: Dataset
    key: Any


@dataclass(frozen=True, slots=True)
class KvSet(Requested):
    """A value stored under a key, or deleted if ``value`` is None; ``value`` is JSON text."""

    scope: str
    key: str
    value: str | None
    expires_us: int | None = None


@dataclass(frozen=True, slots=True)
class KvAdd(Requested):
    """An amount added to the key's present number."""

    scope: str
    key: str
    amount: int | float


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a mail: its name, its media type, and its content in base64."""

    name: str
    type: str
    base64: str


@dataclass(frozen=True, slots=True)
class Mail(Requested):
    """A mail with validated addresses; ``names`` are shown beside them."""

    to: tuple[str, ...]
    subject: str
    text: str | None = None
    html: str | None = None
    reply_to: str | None = None
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    sender_name: str | None = None
    attachments: tuple[Attachment, ...] = ()
    message_id: str = field(default="")
    names: Mapping[str, str] = field(default_factory=dict)

    def parts(self) -> dict[str, Any]:
        """Return the parts that the mail has, JSON-able, by their names in scripts; recipients, subject and text always."""
        always = {"to": list(self.to), "subject": self.subject, "text": self.text}
        others: dict[str, Any] = {
            "html": self.html, "replyTo": self.reply_to, "cc": list(self.cc), "bcc": list(self.bcc), "names": dict(self.names),
            "senderName": self.sender_name, "attachments": [asdict(file) for file in self.attachments],
        }  # fmt: skip
        return always | {name: part for name, part in others.items() if part or part == ""}


@dataclass(frozen=True, slots=True)
class Consumed(Requested):
    """Changes read from a feed: the commit moves the consumer's position.

    Attributes:
        name: name of the dataset, for display.
        base: position before the read, None if there was none; ``to`` is the position after it.
        count: number of changes read; ``more`` is true if others follow.
    """

    name: str
    source: str
    consumer: str
    base: tuple[int, int] | None
    to: tuple[int, int]
    count: int
    more: bool


@dataclass(frozen=True, slots=True)
class Emit(Requested):
    """An event for the tenant's webhooks; ``data`` is JSON text."""

    name: str
    data: str


@dataclass(frozen=True, slots=True)
class RunLater(Requested):
    """A later one-off run of a script; ``input`` is JSON text, ``id`` is that of its action, ``key`` replaces a waiting run."""

    id: str
    script: str
    at_us: int
    input: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class CancelRun(Requested):
    """The cancellation of a waiting run that a script requested, by its id or key."""

    script: str
    run: str


RowEffect = Insert | Update | Increment | Delete
Effect = RowEffect | KvSet | KvAdd | Mail | Emit | Consumed | RunLater | CancelRun


def has_unread_changes(effects: Iterable[Effect]) -> bool:
    """Whether a run left changes unread in a feed that it read."""
    last = {effect.source: effect.more for effect in effects if isinstance(effect, Consumed)}
    return any(last.values())


def apply_to(row: Row, effect: Update | Increment) -> Row:
    """Return the row after the effect.

    Raises:
        CallRefused: ``not_a_number`` or ``out_of_range`` of an increment; ``bad_request``: a path leads through no object.
    """
    if isinstance(effect, Update):
        changes = effect.changes
    else:
        amounts = effect.amounts.items()
        changes = {
            name: _incremented(effect.rows, name, _current_value(effect.rows, row, name), by) for name, by in amounts
        }
    if not isinstance(effect.rows, Collection):
        return row | changes
    for path, value in changes.items():
        row = _with_value(row, path.split("."), value, path)
    return row


def _current_value(rows: Dataset, row: Row, name: str) -> Any:
    """Return the value that a row has in a column, or a document at a path; None if absent."""
    return PathField(name, tuple(name.split("."))).found(row) if isinstance(rows, Collection) else row.get(name)


def _with_value(held: Any, parts: list[str], value: Any, path: str) -> Row:
    """Return a copy of a document with a value at a path, whose remaining names are ``parts``; objects on the way are made."""
    if held is None:
        held = {}
    if not isinstance(held, dict) or held.keys() & {strict_json.INSTANT, strict_json.BYTES, strict_json.OBJECT}:
        raise bad_request(f"{path} leads through a value that is no object")
    first, *rest = parts
    return held | {first: _with_value(held.get(first), rest, value, path) if rest else value}


def _incremented(rows: Dataset, name: str, held: Any, amount: Any) -> Any:
    """Return a value after an increment."""
    if isinstance(rows, Collection):
        if held is not None and (isinstance(held, bool) or not isinstance(held, int | float)):
            raise CallRefused("not_a_number", f"the value of {name} is not a number")
        return add_numbers(held or 0, amount)
    kind = rows.fields[name].kind
    made = (Decimal(0) if kind is Kind.DECIMAL else 0) if held is None else held
    made = kinds.plus(made, amount)
    if kind in (Kind.INT, Kind.BIGINT) and not -kinds.INT64 <= made < kinds.INT64:
        raise CallRefused("out_of_range", f"{name} would exceed 64 bits")
    if kind is Kind.FLOAT and made - made != 0:
        raise CallRefused("out_of_range", f"{name} would exceed the range of numbers")
    return made


def add_numbers(held: float, amount: float) -> int | float:
    """Add like JavaScript's numbers; integers stay integers.

    Raises:
        CallRefused: ``out_of_range``.
    """
    made = held + amount
    if made - made != 0 or (abs(made) > 2**53 and isinstance(made, int)):
        raise CallRefused("out_of_range", "the sum exceeds the range of numbers")
    return made


def describe(effect: Effect, before: Row | None = None) -> dict[str, Any]:
    """Describe an effect as JSON for ``lodger exec`` and trials.

    Args:
        effect: the effect.
        before: the row before it, for the old values of an update, an increment or a deletion.
    """
    about: dict[str, Any]
    if isinstance(effect, Insert | Update | Increment | Delete):
        rows = effect.rows
        about = {
            "effect": type(effect).__name__.lower(),
            "set": rows.name,
            "id": _to_json(rows, rows.key.name, effect.key),
        }
        named: Iterable[str] = ()
        if isinstance(effect, Insert):
            about["values"] = _display_row(rows, given_values(effect))
        elif isinstance(effect, Update):
            about["changes"], named = _display_row(rows, effect.changes), effect.changes
        elif isinstance(effect, Increment):
            about["amounts"], named = _display_row(rows, effect.amounts), effect.amounts
        elif before is not None:
            named = [name for name in before if name != rows.key.name]
        if before is not None and not isinstance(effect, Insert):
            about["before"] = _display_row(rows, {name: _current_value(rows, before, name) for name in named})
    elif isinstance(effect, KvSet):
        about = {"effect": "kv.set", "key": effect.key, "value": effect.value}
        if effect.value is None:
            about = {"effect": "kv.delete", "key": effect.key}
    elif isinstance(effect, KvAdd):
        about = {"effect": "kv.add", "key": effect.key, "amount": effect.amount}
    elif isinstance(effect, Consumed):
        about = {"effect": "changes", "set": effect.name, "count": effect.count, "more": effect.more}
    elif isinstance(effect, Emit):
        about = {"effect": "event", "name": effect.name, "data": json.loads(effect.data)}
    elif isinstance(effect, RunLater):
        at = strict_json.instant_text(from_us(effect.at_us))
        about = {"effect": "run", "id": effect.id, "script": effect.script, "at": at, "input": json.loads(effect.input)}
        about |= {"key": effect.key} if effect.key is not None else {}
    elif isinstance(effect, CancelRun):
        about = {"effect": "run.cancel", "script": effect.script, "run": effect.run}
    else:
        about = {"effect": "mail", **effect.parts()}
        if effect.attachments:
            about["attachments"] = [file.name for file in effect.attachments]
    if effect.line:
        about["line"] = effect.line
    return about


def given_values(effect: Insert) -> Row:
    """Return the values that the script set in a new row; the database fills in the others."""
    return {name: value for name, value in effect.row.items() if effect.given is None or name in effect.given}


def on_wire(rows: Dataset, row: Row) -> dict[str, Any]:
    """Return a row, or some of its columns, in wire form."""
    return {name: _wire(rows, name, value) for name, value in row.items()}


def _display_row(rows: Dataset, row: Row) -> dict[str, Any]:
    """Return a row for people, in wire form."""
    return {name: _to_json(rows, name, value) for name, value in row.items()}


def _to_json(rows: Dataset, name: str, value: Any) -> Any:
    """Return a value in wire form; as text if it has no wire form."""
    try:
        return _wire(rows, name, value)
    except CallRefused:
        return str(value)


def _wire(rows: Dataset, name: str, value: Any) -> Any:
    """Return the value of a column or path in the form in which scripts see it."""
    if isinstance(rows, TableDataset):
        return kinds.show(rows.fields[name].kind, value)
    return value


def amount_of(rows: Dataset, name: str, value: Any) -> Any:
    """Return the canonical amount of an increment.

    Raises:
        CallRefused: ``bad_request``: not a number, or a column that is not numeric.
    """
    if isinstance(rows, TableDataset):
        column = rows.fields[name]
        if column.kind not in kinds.NUMERIC or value is None:
            raise bad_request(f"{name} cannot be incremented by this value")
        return scaled(column, kinds.read(column.kind, value, name), name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_request(f"{name} must be incremented by a number")
    if "." in name and not PATH.fullmatch(name):
        raise bad_request("a path is names joined by dots, of letters, digits and _ only")
    return value
