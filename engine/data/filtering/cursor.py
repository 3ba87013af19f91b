"""Opaque cursors of listings: the next page begins after the cursor. They hold only the last row's own values."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from lodger.engine.core import strict_json
from lodger.engine.core.refusal import bad_request
from lodger.engine.data.filtering.parsing import Order
from lodger.engine.data.values import kinds
from lodger.engine.data.values.fields import BOOLEAN, NULL, OTHER, TIME, ColumnField, classed

_LONGEST = 64 * 1024


def write_cursor(name: str, order: Sequence[Order], terms: Sequence[Any]) -> str:
    """Return the cursor of a row with these ordering values."""
    shown = [
        kinds.show(term.field.kind, value) if isinstance(term.field, ColumnField) else list(value)
        for term, value in zip(order, terms, strict=True)
    ]
    return base64.urlsafe_b64encode(strict_json.dump([name, _signature(order), shown]).encode()).decode()


def read_cursor(text: Any, name: str, order: Sequence[Order]) -> tuple[Any, ...]:
    """Return the ordering values of a cursor.

    Raises:
        CallRefused: ``bad_request``: not a cursor, or one of another dataset or order.
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise bad_request("this is not a cursor")
    try:
        found = strict_json.parse(base64.b64decode(text, altchars=b"-_", validate=True).decode())
        of, signature, shown = found
        if [of, signature] != [name, _signature(order)] or len(shown) != len(order):
            raise bad_request("this cursor belongs to another set or order")
        return tuple(_term(term, value) for term, value in zip(order, shown, strict=True))
    except (binascii.Error, ValueError, TypeError):
        raise bad_request("this is not a cursor") from None


def _signature(order: Sequence[Order]) -> list[str]:
    """Return the terms of an order as text, which a cursor must match."""
    return [("-" if term.descending else "") + term.field.name for term in order]


def _term(term: Order, value: Any) -> Any:
    """Return one ordering value of a cursor, checked against its term."""
    if isinstance(term.field, ColumnField):
        return kinds.read(term.field.kind, value, term.field.name)
    rank, inner = value
    plain = {BOOLEAN: bool(inner) if inner in (0, 1) else None, NULL: None, OTHER: []}.get(rank, inner)
    if rank == TIME:
        plain = {strict_json.INSTANT: inner}
    found = classed(strict_json.normal(plain))
    if type(rank) is not int or found[0] != rank:
        raise bad_request("this is not a cursor")
    return found
