"""Host side of ``db`` for changes. They enter the journal; the commit applies them if the step succeeds."""

from typing import Any

from sqlalchemy.sql.schema import ScalarElementColumnDefault

from lodger.engine.capabilities.db_read import committed_row, read_key
from lodger.engine.capabilities.session import Session
from lodger.engine.core import strict_json
from lodger.engine.core.refusal import CallRefused, bad_request, denied
from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.data.sets.dataset import Collection, Dataset, KeySource, TableDataset, database_of
from lodger.engine.data.sets.foreign import receipts
from lodger.engine.data.values import kinds
from lodger.engine.data.values.fields import PATH, ColumnField
from lodger.engine.data.values.kinds import Kind
from lodger.engine.data.values.stored import canonical, scaled
from lodger.engine.effects.effect import Delete, Increment, Update, amount_of, on_wire

MAX_DOCUMENT = 64 * 1024


async def writable(session: Session, given: dict[str, Any], *, deletes: bool = False) -> Dataset:
    """Return the dataset to be written.

    Raises:
        CallRefused: ``denied``: its database has no table for receipts, or with ``deletes`` its rows cannot be deleted.
    """
    rows = session.datasets.named(given["set"])
    if deletes and isinstance(rows, TableDataset) and not rows.deletable:
        raise denied(f"rows of {rows.name} cannot be deleted by scripts")
    database = database_of(rows)
    if database is not None and not await database.ask(database.receives):
        raise denied(
            f"{rows.name} is read-only: its database has no table {receipts.name}; `lodger db prepare` creates it"
        )
    return rows


async def insert(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Handle db.insert: return the new row with its id."""
    rows = await writable(session, given)
    row, said, token = await new_row(session, rows, given["values"])
    session.budgets.spend("rows_written")
    session.journal.insert(rows, row, given=said, line=given["line"], token=token)
    return on_wire(rows, row)


async def new_row(
    session: Session, rows: Dataset, given: dict[str, Any], *, of: int = 1
) -> tuple[Row, frozenset[str] | None, bool]:
    """Return a new row from the values of a script.

    Args:
        of: number of rows that are inserted together.

    Returns:
        The row with its key; the columns that the script set, None for all; whether the key is a token.
    """
    if isinstance(rows, Collection):
        return _new_document(session, given), None, False
    row = _new_table_row(session, rows, given)
    if rows.key.name in row:
        return row, frozenset(given), False
    key = await session.number(rows, of)
    found = session.journal.token() if key is None else key
    whole = {item.name: found if item is rows.key else row[item.name] for item in rows.shown}
    return whole, frozenset(given), key is None


def new_values(rows: Dataset, given: dict[str, Any], *, paths: bool = True) -> Row:
    """Return the new values of columns, or of fields and paths of a document, from the values of a script."""
    return _document(given, paths=paths) if isinstance(rows, Collection) else _changes(rows, given)


async def update(session: Session, given: dict[str, Any]) -> None:
    """Handle db.update: the change of a row enters the journal."""
    rows = await writable(session, given)
    key = read_key(rows, given["id"])
    await _change(session, Update(rows, key, new_values(rows, given["changes"]), line=given["line"]))


async def increment(session: Session, given: dict[str, Any]) -> None:
    """Handle db.increment: amounts to add to columns of a row enter the journal."""
    rows = await writable(session, given)
    key = read_key(rows, given["id"])
    if isinstance(rows, TableDataset):
        for name in given["amounts"]:
            _may_write(rows, name)
    amounts = {name: amount_of(rows, name, value) for name, value in given["amounts"].items()}
    if "id" in amounts and isinstance(rows, Collection):
        raise denied("the id of a document cannot change")
    await _change(session, Increment(rows, key, amounts, line=given["line"]))


async def delete(session: Session, given: dict[str, Any]) -> bool:
    """Handle db.delete: return whether the row existed."""
    rows = await writable(session, given, deletes=True)
    key = read_key(rows, given["id"])
    committed = await committed_row(session, rows, key) if session.journal.needs(rows, key) else None
    if session.journal.current(rows, key, committed) is None:
        return False
    session.budgets.spend("rows_written")
    session.journal.delete(Delete(rows, key, line=given["line"]), committed)
    return True


async def _change(session: Session, effect: Update | Increment) -> None:
    """Add an update or increment to the journal."""
    rows = effect.rows
    committed = await committed_row(session, rows, effect.key) if session.journal.needs(rows, effect.key) else None
    session.budgets.spend("rows_written")
    session.journal.change(effect, committed)


def _may_write(rows: TableDataset, name: str) -> ColumnField:
    """Return a writable column; the tenant's, the key, audit columns and unknown names get the same refusal."""
    if name not in rows.writable:
        can = ", ".join(sorted(rows.writable)) or "none"
        raise denied(f"scripts cannot write this column of {rows.name}; they can write: {can}")
    return rows.fields[name]


def _changes(rows: TableDataset, given: dict[str, Any]) -> Row:
    """Return the values of an update, checked."""
    if rows.key.name in given:
        raise denied(f"the id of a row of {rows.name} cannot change")
    return {name: _value(rows, _may_write(rows, name), value) for name, value in given.items()}


def _new_table_row(session: Session, rows: TableDataset, given: dict[str, Any]) -> Row:
    """Return the row to insert into a table, checked: with defaults, and with a new key unless the database generates it."""
    if not rows.insertable:
        raise denied(f"rows of {rows.name} cannot be inserted by scripts")
    row = {name: _value(rows, _may_write(rows, name), value) for name, value in given.items()}
    for name in rows.required:
        if row.get(name) is None:
            raise bad_request(f"{rows.name}.{name} needs a value")
    key = rows.key.name
    later = key not in row and rows.key_source is KeySource.DATABASE
    if key not in row and not later:
        if rows.key_source is KeySource.GIVEN:
            raise bad_request(f"{rows.name}.{key} needs a value")
        row[key] = session.new_id()
    return {item.name: row.get(item.name, _default(item)) for item in rows.shown if not (later and item is rows.key)}


def _default(column: ColumnField) -> Any:
    """Return a column's constant default, None for any other kind."""
    default = column.column.default
    plain = default.arg if isinstance(default, ScalarElementColumnDefault) else None
    return canonical(column, plain) if column.kind is not Kind.JSON else plain


def _value(rows: TableDataset, column: ColumnField, given: Any) -> Any:
    """Return the canonical value of one column, within the column's limits.

    Raises:
        CallRefused: ``bad_request`` or ``denied``.
    """
    name = f"{rows.name}.{column.name}"
    value = kinds.read(column.kind, given, name)
    if value is None:
        if not column.nullable:
            raise bad_request(f"{name} needs a value")
        return None
    if column.kind is Kind.TEXT:
        if column.max_length is not None and len(value) > column.max_length:
            raise bad_request(f"{name} has at most {column.max_length} characters")
        if column.choices is not None and value not in column.choices:
            raise bad_request(f"{name} must be one of: {', '.join(column.choices)}")
    return scaled(column, value, name)


def _new_document(session: Session, given: dict[str, Any]) -> Row:
    """Return the document to insert, checked, with its id."""
    key = given.get("id")
    if key is None:
        key = session.new_id()
    if not isinstance(key, str) or not 0 < len(key) <= 200:
        raise bad_request("the id of a document must be text of 1 to 200 characters")
    return {"id": key} | _document({name: value for name, value in given.items() if name != "id"})


def _document(given: dict[str, Any], *, paths: bool = False) -> Row:
    """Return the content of a document, checked."""
    if "id" in given:
        raise denied("the id of a document cannot change")
    made = strict_json.normal(given)
    if not isinstance(made, dict) or set(made) & {strict_json.INSTANT, strict_json.BYTES, strict_json.OBJECT}:
        raise bad_request("a document must be an object with names that do not begin with $")
    for name in made:
        if "." in name and not (paths and PATH.fullmatch(name)):  # a filter would never find it
            first, _, rest = name[:60].partition(".")
            raise bad_request(f"the name of a field has no dot: write {{ {first}: {{ {rest}: … }} }} for {name[:60]}")
    inner = _dotted(list(made.values()))
    if inner is not None:
        raise bad_request(
            f"the name of a field has no dot, and {inner[:60]} has one: a path would never find it; "
            "write objects in each other, or store JSON.stringify(value)"
        )
    if len(strict_json.dump(made).encode()) > MAX_DOCUMENT:
        raise CallRefused("too_large", f"a document has at most {MAX_DOCUMENT} bytes of JSON")
    return made


def _dotted(value: Any) -> str | None:
    """Return the first member name of a document's value that contains a dot, None if there is none."""
    if isinstance(value, dict):
        return next((name for name in value if "." in name), None) or _dotted(list(value.values()))
    return next(filter(None, map(_dotted, value)), None) if isinstance(value, list) else None


HANDLERS = {"db.insert": insert, "db.update": update, "db.increment": increment, "db.delete": delete}
