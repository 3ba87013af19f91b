"""Conversion between canonical values and a database's: selected expressions, bound values, results."""

import json
import math
import uuid
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from sqlalchemy import JSON, String, Uuid
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.core.refusal import bad_request
from lodger.engine.data.values.fields import ColumnField
from lodger.engine.data.values.kinds import EXACT, Kind
from lodger.engine.store.drivers import Driver
from lodger.engine.store.drivers.expressions import Bytewise

#: The ones that are no numbers: rows that hold them are alike, as dictionaries that hold one object are.
NAN, DECIMAL_NAN = math.nan, Decimal("NaN")


def column_of(field: ColumnField, driver: Driver) -> ColumnElement[Any]:
    """Return the SQL expression by which a column is selected, compared and ordered."""
    column = field.column
    if field.kind is Kind.TEXT:
        return Bytewise(column)
    return driver.decimal_column(column) if field.kind is Kind.DECIMAL else column


def stored(field: ColumnField, value: Any, driver: Driver) -> Any:
    """Return the value to bind for a canonical value.

    Raises:
        CallRefused: too_many_digits.
    """
    kind = field.kind
    if kind is Kind.DECIMAL:
        return driver.decimal_value(value)
    if kind is Kind.INSTANT:
        zoned = driver.has_zones and getattr(field.column.type, "timezone", False)
        return value if zoned else value.astimezone(UTC).replace(tzinfo=None)
    if kind is Kind.UUID:
        as_object = isinstance(field.column.type, Uuid) and field.column.type.as_uuid
        return uuid.UUID(value) if as_object else value
    return value


def bound_type(field: ColumnField, driver: Driver) -> Any:
    """Return the type by which a stored value is bound."""
    if field.kind is Kind.TEXT:
        return String()
    if field.kind is Kind.DECIMAL:
        # A precision would round the value before it is compared.
        return driver.decimal_type
    return driver.integer_type(field.column) if field.kind in (Kind.INT, Kind.BIGINT) else field.column.type


def canonical(field: ColumnField, raw: Any) -> Any:
    """Return the canonical value of a database's value."""
    if raw is None:
        return None
    kind = field.kind
    if kind is Kind.DECIMAL:
        return as_decimal(raw, field.scale)
    if kind is Kind.INSTANT:
        moment: datetime = raw
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if kind is Kind.UUID:
        return str(raw if isinstance(raw, uuid.UUID) else uuid.UUID(str(raw)))
    if kind is Kind.BYTES:
        return bytes(raw)
    if kind is Kind.JSON and not isinstance(field.column.type, JSON):
        return json.loads(raw)
    if kind is Kind.BOOL:
        return bool(raw)
    if kind is Kind.FLOAT:
        return NAN if raw != raw else float(raw)
    return raw


def document_row(key: str, body: str) -> dict[str, Any]:
    """Return a document as a row: its key as ``id``, and the fields of its JSON text."""
    made: dict[str, Any] = json.loads(body)
    return {"id": key} | made


def as_decimal(raw: Any, scale: int | None) -> Decimal:
    """Return a database's number as a decimal with the column's scale."""
    made = raw if isinstance(raw, Decimal) else Decimal(repr(raw) if isinstance(raw, float) else str(raw))
    if made.is_nan():
        return DECIMAL_NAN
    return made if scale is None or made.is_infinite() else at_scale(made, scale, ROUND_HALF_EVEN)


def scaled(field: ColumnField, value: Any, name: str) -> Any:
    """Return a value as a column returns it: a decimal with all of the column's digits.

    Raises:
        CallRefused: ``bad_request``: it has more of them.
    """
    if field.kind is not Kind.DECIMAL or field.scale is None:
        return value
    if value.as_tuple().exponent < -field.scale:
        raise bad_request(f"{name} has {field.scale} digits after the decimal point")
    return at_scale(value, field.scale, ROUND_HALF_EVEN)


def at_scale(value: Decimal, scale: int, rounding: str) -> Decimal:
    """Round to a number of digits after the point, and show all of them."""
    return value.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=EXACT)


def floor_ceiling(value: Decimal, scale: int) -> tuple[Decimal, Decimal]:
    """Return the nearest values below and above that a column of this scale can hold; both are the value if it can hold it."""
    return at_scale(value, scale, ROUND_FLOOR), at_scale(value, scale, ROUND_CEILING)
