"""What a careless host would do with a tenant's questions, for the matrix only: statements out of text, keys of nobody's, mails as told."""

import json
import sqlite3
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from lodger.sandbox.job import Reply

_SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "gt": ">", "lte": "<=", "gte": ">="}


def careless_answer(without: frozenset[str], engine: sa.Engine, tenant: str, name: str, arguments: str) -> Reply | None:
    """Answer a call without the layers that are named; None leaves it to the real host."""
    kind = name.partition(".")[0]
    for layer, kinds, answer in _CARELESS:
        if layer in without and kind in kinds:
            try:
                told = answer(engine, tenant, name, json.loads(arguments))
                return None if told is None else Reply(True, json.dumps(told, default=str))
            except (
                sa.exc.SQLAlchemyError,
                sqlite3.Error,
                LookupError,
                TypeError,
                ValueError,
                AttributeError,
            ) as problem:
                return Reply(False, json.dumps({"code": "error", "message": str(problem)}))
    return None


def _statement(engine: sa.Engine, tenant: str, name: str, given: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Put a statement together from the tenant's own words."""
    table, owner = ("orders", "org_id") if given.get("set") == "orders" else ("lodger_documents", "tenant_id")
    if given.get("set") not in ("orders", "things"):
        table = str(given.get("set"))
    conditions = "".join(_condition(field, wanted) for field, wanted in (given.get("filter") or {}).items())
    if "id" in given:
        conditions = f" AND id = '{given['id']}'"
    order = "".join(f" ORDER BY {word}" for word in _words(given.get("order")))
    group = "".join(f" GROUP BY {word}" for word in given.get("groupBy") or ())
    what = "count(*)" if name == "db.count" else "*"
    text = f"SELECT {what} FROM {table} WHERE {owner} = '{tenant}'{conditions}{group}{order}"  # noqa: S608 - the point of it
    with engine.connect() as connection:
        return [list(row) for row in connection.exec_driver_sql(text)]


def _merged(engine: sa.Engine, _tenant: str, _name: str, given: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Let a filter's own word about the tenant count, wherever it stands; None when it says none."""
    said = json.dumps(given.get("filter"))
    if not any(word in said for word in ("org_id", "tenant_id", '"$')):
        return None
    table = "orders" if given.get("set") == "orders" else "lodger_documents"
    with engine.connect() as connection:
        return [list(row) for row in connection.exec_driver_sql(f"SELECT * FROM {table}")]  # noqa: S608 - the point of it


def _condition(field: str, wanted: Any) -> str:  # noqa: ANN401 - any JSON value
    if not isinstance(wanted, dict):
        return f" AND {field} = '{wanted}'"
    return "".join(
        f" AND {field} LIKE '%{value}%'"
        if sign in ("contains", "startsWith")
        else f" AND {field} {_SIGNS.get(sign, sign)} '{value}'"
        for sign, value in wanted.items()
    )


def _words(order: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    if order is None:
        return []
    first = order[0] if isinstance(order, list) else order
    return [" ".join(f"{name} {way}" for name, way in first.items())] if isinstance(first, dict) else [str(first)]


def _key(engine: sa.Engine, _tenant: str, _name: str, given: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Find a key by its last part, whoever's it is."""
    wanted = str(given.get("key", given.get("prefix", ""))).replace("\0", "/").replace(":", "/").rpartition("/")[2]
    with engine.connect() as connection:
        found = connection.execute(
            sa.text("SELECT tenant_id, value FROM lodger_kv WHERE key LIKE :key ORDER BY tenant_id DESC"),
            {"key": f"%{wanted}%"},
        )
        return [list(row) for row in found]


def _letter(_engine: sa.Engine, _tenant: str, _name: str, given: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Write a mail's head as it is told."""
    return {"messageId": "m", "head": "".join(f"{name}: {value}\n" for name, value in given.items())}


def _secret(_engine: sa.Engine, _tenant: str, _name: str, given: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Give whatever is asked for."""
    return f"canary-of-the-other {given.get('name')}"


_Answer = Callable[[sa.Engine, str, str, dict[str, Any]], Any]
_CARELESS: tuple[tuple[str, tuple[str, ...], _Answer], ...] = (
    ("bound_values", ("db",), _statement),
    ("tenant_predicate", ("db",), _merged),
    ("tenant_keys", ("kv",), _key),
    ("mail_checks", ("mail",), _letter),
    ("grants", ("secrets",), _secret),
)
