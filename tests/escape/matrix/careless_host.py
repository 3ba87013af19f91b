"""A careless host of an attempt, for the matrix only: SQL built from text, keys of any tenant, unchecked mails, requests to any address."""

import asyncio
import json
import socket
import sqlite3
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa

from lodger.engine.core.execution import Answer
from lodger.engine.data.sets.scope import Scope
from lodger.engine.egress.request import Request
from lodger.escape.case import Case
from lodger.escape.cases.tenants.requests import requesting_host
from lodger.escape.cases.tenants.world import MINE, Everything, TenantHost, world
from lodger.sandbox.job import CallHandler, Reply
from lodger.sandbox.limits import Limits

_CONNECT_S = 2.0
_MANY = 10**6
_SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "gt": ">", "lte": "<=", "gte": ">="}


def careless_answer(without: frozenset[str], engine: sa.Engine, tenant: str, name: str, arguments: str) -> Reply | None:
    """Answer a call without the given layers; None if the real host answers."""
    kind = name.partition(".")[0]
    for layer, kinds, answer in _CARELESS:
        if layer in without and kind in kinds:
            try:
                reported = answer(engine, tenant, name, json.loads(arguments))
                return None if reported is None else Reply(True, json.dumps(reported, default=str))
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


def _statement(engine: sa.Engine, tenant: str, name: str, given: dict[str, Any]) -> Any:
    """Run an SQL statement built from the tenant's text."""
    table, owner = ("orders", "org_id") if given.get("set") == "orders" else ("lodger_documents", "tenant_id")
    if given.get("set") not in ("orders", "things"):
        table = str(given.get("set"))
    conditions = "".join(_condition(field, wanted) for field, wanted in (given.get("filter") or {}).items())
    if "id" in given:
        conditions = f" AND id = '{given['id']}'"
    order = "".join(f" ORDER BY {word}" for word in _words(given.get("order")))
    group = "".join(f" GROUP BY {word}" for word in given.get("groupBy") or ())
    what = "count(*)" if name == "db.count" else "*"
    text = f"SELECT {what} FROM {table} WHERE {owner} = '{tenant}'{conditions}{group}{order}"
    with engine.connect() as connection:
        return [list(row) for row in connection.exec_driver_sql(text)]


def _merged(engine: sa.Engine, _tenant: str, _name: str, given: dict[str, Any]) -> Any:
    """Return rows of the tenant that a filter names; None if it names none."""
    said = json.dumps(given.get("filter"))
    if not any(word in said for word in ("org_id", "tenant_id", '"$')):
        return None
    table = "orders" if given.get("set") == "orders" else "lodger_documents"
    with engine.connect() as connection:
        return [list(row) for row in connection.exec_driver_sql(f"SELECT * FROM {table}")]


def _condition(field: str, wanted: Any) -> str:
    if not isinstance(wanted, dict):
        return f" AND {field} = '{wanted}'"
    return "".join(
        f" AND {field} LIKE '%{value}%'"
        if sign in ("contains", "startsWith")
        else f" AND {field} {_SIGNS.get(sign, sign)} '{value}'"
        for sign, value in wanted.items()
    )


def _words(order: Any) -> list[str]:
    if order is None:
        return []
    first = order[0] if isinstance(order, list) else order
    return [" ".join(f"{name} {way}" for name, way in first.items())] if isinstance(first, dict) else [str(first)]


def _key(engine: sa.Engine, _tenant: str, _name: str, given: dict[str, Any]) -> Any:
    """Return the value of a key of any tenant by its last part."""
    wanted = str(given.get("key", given.get("prefix", ""))).replace("\0", "/").replace(":", "/").rpartition("/")[2]
    with engine.connect() as connection:
        found = connection.execute(
            sa.text("SELECT tenant_id, value FROM lodger_kv WHERE key LIKE :key ORDER BY tenant_id DESC"),
            {"key": f"%{wanted}%"},
        )
        return [list(row) for row in found]


def _letter(_engine: sa.Engine, _tenant: str, _name: str, given: dict[str, Any]) -> Any:
    """Return a mail's head without checks."""
    return {"messageId": "m", "head": "".join(f"{name}: {value}\n" for name, value in given.items())}


def _secret(_engine: sa.Engine, _tenant: str, _name: str, given: dict[str, Any]) -> Any:
    """Return any secret."""
    return f"canary-of-the-other {given.get('name')}"


_Answer = Callable[[sa.Engine, str, str, dict[str, Any]], Any]
_CARELESS: tuple[tuple[str, tuple[str, ...], _Answer], ...] = (
    ("bound_values", ("db",), _statement),
    ("tenant_predicate", ("db",), _merged),
    ("tenant_keys", ("kv",), _key),
    ("mail_checks", ("mail",), _letter),
    ("grants", ("secrets",), _secret),
)


class _AnyTenant(Scope):
    """A scope without a tenant predicate."""

    def predicate(self, _rows: object) -> Any:
        return sa.true()


class CarelessHost(TenantHost):
    """The host of an attempt without the given layers."""

    def __init__(self, limits: Limits, without: frozenset[str], **other: Any) -> None:
        if "grants" in without:
            other |= {"granted": Everything(()), "datasets": world().open}
        if "budgets" in without:
            other["budgets"] = dict.fromkeys(("queries", "rows_read", "rows_written", "mails"), _MANY)
        super().__init__(limits, **other)
        self._without = without
        if "tenant_predicate" in without:
            self.attempt.scope = _AnyTenant(MINE)

    async def answer(self, name: str, arguments: str) -> Reply:
        """Answer without the removed layers, otherwise as the real host."""
        careless = careless_answer(self._without, world().engine, MINE, name, arguments)
        return await super().answer(name, arguments) if careless is None else careless


async def _send_anywhere(request: Request) -> Answer:
    parts = urlsplit(request.url)
    loop = asyncio.get_running_loop()
    found = socket.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICSERV)
    for family, kind, protocol, _, place in found:
        with socket.socket(family, kind, protocol) as way:
            way.setblocking(False)
            try:
                async with asyncio.timeout(_CONNECT_S):
                    await loop.sock_connect(way, place)
            except OSError:
                continue
            return Answer(200, "", request.url, (), b"", redirected=False, sent_bytes=0, received_bytes=0)
    raise ConnectionError


def careless_maker(case: Case, without: frozenset[str]) -> Callable[[Limits], CallHandler]:
    """Return the factory of a case's host without these layers."""
    assert case.host is not None
    if not without:
        return case.host
    if case.host is requesting_host:
        send = {"send": _send_anywhere} if without & {"closed_addresses", "one_reading"} else {}
        return lambda limits: CarelessHost(limits, without | {"grants"}, **send)
    assert case.host is TenantHost, f"{case.id} has a host that the matrix cannot weaken"
    return lambda limits: CarelessHost(limits, without)
