"""Host side of ``db`` for calls on many rows, and for upserts.

A call is atomic: an error in one of its rows is raised before any of them is in the journal. Rows chosen by a filter
count as shown to the script: at the commit each must be unchanged since the filter saw it.
"""

from typing import Any

from lodger.engine.capabilities.db_read import lookup, read_key, read_page, refuse_misread
from lodger.engine.capabilities.db_write import new_row, new_values, writable
from lodger.engine.capabilities.session import Session
from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.data.filtering.parsing import And, Compare, Filter, Op, Order, chooses_all, read_filter
from lodger.engine.data.sets.dataset import Collection, Dataset
from lodger.engine.effects.effect import Delete, Update, apply_to, on_wire

#: Maximum total size of the rows chosen by one filter, bytes.
MAX_CHOSEN_BYTES = 8 * 1024 * 1024


async def insert_many(session: Session, given: dict[str, Any]) -> list[dict[str, Any]]:
    """Handle db.insertMany: return the new rows."""
    rows = await writable(session, given)
    made = [await new_row(session, rows, values, of=len(given["rows"])) for values in given["rows"]]
    keys = {row[rows.key.name] for row, _said, _token in made}
    known = session.journal.of(rows).touched
    if len(keys) < len(made) or any(key in known and known[key].now is not None for key in keys):
        raise bad_request(f"two of these rows of {rows.name} have the same id")
    session.budgets.spend("rows_written", len(made))
    for row, said, token in made:
        session.journal.insert(rows, row, given=said, line=given["line"], token=token)
    return [on_wire(rows, row) for row, _said, _token in made]


async def update_many(session: Session, given: dict[str, Any]) -> int:
    """Handle db.updateMany: return the number of rows."""
    rows = await writable(session, given)
    changes = new_values(rows, given["changes"])
    found = await _select(session, rows, _filter(session, rows, given, "updateMany({}, changes, { all: true })"))
    for row in found:
        session.journal.change(Update(rows, row[rows.key.name], changes, line=given["line"]), row)
    return len(found)


async def delete_many(session: Session, given: dict[str, Any]) -> int:
    """Handle db.deleteMany: return the number of rows."""
    rows = await writable(session, given, deletes=True)
    found = await _select(session, rows, _filter(session, rows, given, "deleteMany({}, { all: true })"))
    for row in found:
        session.journal.delete(Delete(rows, row[rows.key.name], line=given["line"]), row)
    return len(found)


async def upsert(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Handle db.upsert: update the row that is equal in ``on``, or insert one; return the row."""
    rows = await writable(session, given)
    values = given["values"]
    on = _upsert_key(rows, given["on"], values)
    wanted = {name: values[name] for name in on}
    if on == [rows.key.name]:
        wanted = {rows.key.name: read_key(rows, values[rows.key.name])}
        tree: Filter = And((Compare(rows.key, Op.EQ, wanted[rows.key.name]),))
    else:
        tree = read_filter(wanted, rows.lookup)
    some, _cut, _related = await read_page(session, rows, tree, (Order(rows.key),), 1)
    (found, *_) = [*some, None]
    if found is None:
        row, said, token = await new_row(session, rows, values)
        session.budgets.spend("rows_written")
        session.journal.insert(rows, row, given=said, line=given["line"], token=token, upsert=True)
        return on_wire(rows, row)
    rest = {name: value for name, value in values.items() if name not in on}
    if rest:
        effect = Update(rows, found[rows.key.name], new_values(rows, rest, paths=False), line=given["line"])
        session.budgets.spend("rows_written")
        session.journal.record_read(rows, [found])
        session.journal.change(effect, found)
        found = apply_to(found, effect)
    return on_wire(rows, found)


def _upsert_key(rows: Dataset, asked: list[str] | None, values: dict[str, Any]) -> list[str]:
    """Return the columns that identify the row of an upsert.

    Raises:
        CallRefused: ``bad_request``: they are not unique for the tenant, or have no value.
    """
    key = rows.key.name
    on = sorted(set(asked)) if asked is not None else [key]
    alone = on == [key]
    if isinstance(rows, Collection):
        if not alone:
            raise bad_request("documents can be matched only by their id")
    elif frozenset(on) not in rows.unique and not (alone and key in rows.writable):
        listed = ["+".join(sorted(each)) for each in rows.unique] + ([key] if key in rows.writable else [])
        raise bad_request(f"rows of {rows.name} can be matched by: {', '.join(sorted(listed)) or 'nothing'}")
    for name in on:
        if values.get(name) is None:
            raise bad_request(f"{rows.name}.{name} needs a value: rows are matched by it")
    return on


def _filter(session: Session, rows: Dataset, given: dict[str, Any], every: str) -> Filter:
    """Read the filter of a call on many rows.

    Raises:
        CallRefused: ``filter_missing``: it matches every row, and ``all`` is not set.
    """
    tree = read_filter(given["filter"], lookup(session, rows))
    if chooses_all(tree) and not given["all"]:
        raise CallRefused(
            "filter_missing", f"this filter matches every row of {rows.name}; if that is intended, write {every}"
        )
    return tree


async def _select(session: Session, rows: Dataset, tree: Filter) -> list[Row]:
    """Return the rows that match a filter as this run sees them, within its write budget.

    Raises:
        CallRefused: ``budget_exceeded``: too many rows, or ``too_large``: too many bytes to keep until the commit.
    """
    most = session.budgets.left("rows_written") + 1
    by_key = (Order(rows.key),)
    found, cut, _related = await read_page(session, rows, tree, by_key, most, max_bytes=MAX_CHOSEN_BYTES)
    if cut:
        raise CallRefused(
            "too_large", f"these rows of {rows.name} are too large for one call; use a filter that matches fewer"
        )
    if not found:
        await refuse_misread(session, rows, tree)
    session.budgets.spend("rows_written", len(found))
    session.journal.record_read(rows, found)
    return found


HANDLERS = {
    "db.insertMany": insert_many,
    "db.updateMany": update_many,
    "db.deleteMany": delete_many,
    "db.upsert": upsert,
}
