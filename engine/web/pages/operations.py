"""Pages made from the declared operations: an index, a form for each, and the results of those that read."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, get_args
from urllib.parse import quote, urlencode

from pydantic import ValidationError

from lodger.engine.core.access.names import is_segment
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.serialization import adapter, to_jsonable
from lodger.engine.server.openapi import given, query_of
from lodger.engine.server.operation_call import etag
from lodger.engine.server.problems import field_errors, not_valid
from lodger.engine.service.operations.help_texts import WORDS, explained, plain, summary
from lodger.engine.service.operations.route import Parameter, Route
from lodger.engine.service.operations.table import OperationTable
from lodger.engine.store.records import Action, Schedule, Tenant
from lodger.engine.web import rendering
from lodger.engine.web.listing import in_order
from lodger.engine.web.page import PAGE, Reader, Values
from lodger.engine.web.texts import _

#: Pages that show what an operation answers, by its type.
SHOWN_AT: dict[Any, str] = {
    Action: "/t/{answer.tenant_id}/actions/{answer.id}",
    Schedule: "/t/{answer.tenant_id}/schedules/{answer.name}",
    Tenant: "/t/{answer.id}/settings",
}
#: Parameters that are not shown while they are typed.
SECRETS = {"value", "client_secret", "secret"}
#: Characters of an instant to the second, as fields have it.
SECONDS = 19


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an operation's form.

    Attributes:
        kind: text, secret, number, boolean, choice, instant, words (a list of texts), mixed (a text, one for each line, or JSON), source
            (a text, or a JSON object) or json.
        value: the present value as text.
    """

    name: str
    title: str
    kind: str
    help: str
    needed: bool
    default: str
    choices: tuple[str, ...]
    value: str


@dataclass(frozen=True, slots=True)
class Link:
    """An operation on a record: the query of its form for it, and the call if that has nothing to fill in."""

    operation: str
    query: str
    call: str
    confirm: str


def form(reader: Reader, name: str, present: Values | None = None) -> Values | None:
    """Return the values of the form of an operation; None if there is none that the caller may carry out."""
    route = routes(reader).get(name)
    return None if route is None else _form(reader, route, present or {})


def _form(reader: Reader, route: Route, present: Values) -> Values:
    """Return the values of the form of a route: its fields with present values, what it calls and asks before, with names of fields in
    braces, and the page that follows."""
    tenant = reader.tenant["tenant_id"]
    shown = [_field(route, each, present) for each in route.parameters if _is_shown(route, each, tenant)]
    at = SHOWN_AT.get(route.answer) if route.changes else None
    return {
        "route": route,
        "fields": shown,
        "call": f"{route.method} {_path(route, tenant)}",
        "confirm": _question(route, tenant),
        "then": f"{reader.root}{at}" if at else "",
        "match": present.get("_match") if route.declared.tagged and route.method in {"PUT", "PATCH"} else None,
        # As a browser sends them if nothing is typed.
        "was": {each.name: each.value[:SECONDS] if each.kind == "instant" else each.value for each in shown},
    }


def operations(reader: Reader) -> tuple[str, Values]:
    """Return the page with the operations that the caller may carry out: its template and values."""
    if (tenant := reader.tenant["tenant_id"]) is not None:
        reader.ask("tenants.get", tenant_id=tenant)
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, route in routes(reader).items():
        groups.setdefault(route.noun, []).append((name, summary(route.function)))
    return "operations.html", {"groups": groups}


def operation(reader: Reader) -> tuple[str, Values]:
    """Return an operation's form, with the present values of what it edits, or with what it reads.

    Raises:
        NotFound: operation_unknown.
    """
    name = reader.request.path_params["operation"]
    route = _route(reader, name)
    if route is None:
        raise NotFound("operation_unknown", name=name)
    tenant = reader.tenant["tenant_id"]
    if tenant is not None:
        reader.ask("tenants.get", tenant_id=tenant)
    allowed = reader.caller.role.covers(route.role)
    asked = {key: value for key, value in reader.request.query_params.items() if value}
    wanted = {each.name for each in route.parameters if each.place == "path" or (each.needed and route.method == "GET")}
    path = {each.name: asked[each.name] for each in route.at("path") if each.name in asked}
    if tenant is not None and "tenant_id" in wanted:
        path["tenant_id"] = tenant
    complete = wanted <= asked.keys() | path.keys()
    others = {key: each for key, each in routes(reader).items() if each.noun == route.noun and key != name}
    result = refusal = files = None
    paged = {"limit", "cursor"} <= {each.name for each in route.parameters}
    if route.method == "GET" and allowed and complete:
        try:
            arguments = path | ({"limit": PAGE} if paged else {}) | _query(route, asked)
            result = reader.ask(name, **arguments)
            if isinstance(result, list):
                files = name, {key: each for key, each in arguments.items() if key != "cursor"}
                result = result if paged else in_order(reader, result)
        except InputError as error:
            if asked:
                raise
            refusal = error  # nothing was asked that could be wrong: the engine is not set up for it
    stored = _present(reader, route, asked, path) if complete and allowed else {}
    present = asked | stored
    return "operation.html", {
        "form": _form(reader, route, present),
        "route": route,
        "help": plain(route.described.partition("\n\nArgs:")[0].partition("\n\nRaises:")[0]),
        "allowed": allowed,
        "zone": present.get("tz") if route.noun == "schedules" else None,
        "records": None if result is None else records(reader, name, result),
        "refusal": refusal,
        "others": others,
        "files": files,
        "paged": paged,
        "next": urlencode(asked | {"cursor": cursor}) if (cursor := getattr(result, "next", None)) else None,
    }


def shown_once(route: Route) -> list[str]:
    """Return the fields of an operation's answer that are secret, as ``answer.NAME``."""
    kinds = [each for each in (route.answer, *get_args(route.answer)) if is_dataclass(each)]
    return [f"answer.{each.name}" for kind in kinds for each in fields(kind) if not each.repr]


def _question(route: Route, tenant: str | None) -> str:
    """Return what is asked before an operation that cannot be taken back, with the names of fields in braces; else an empty text."""
    asked = _(route.declared.confirm or "") or (rendering.verb(route.name) if route.method == "DELETE" else "")
    asked = asked if tenant is None else asked.replace("{tenant_id}", tenant)
    return asked and f"{asked[0].upper()}{asked[1:]}?"


def _path(route: Route, tenant: str | None) -> str:
    """Return a route's path, with the tenant of the page."""
    return route.path if tenant is None else route.path.replace("{tenant_id}", quote(tenant, safe=""))


@cache
def _routes(table: OperationTable, of_tenant: bool) -> dict[str, Route]:
    """Return the routes of operations that have a form, by name: a tenant's on its pages; elsewhere the platform's if there is one.
    Those that take JSON come before those that take a file."""
    usable = [each for each in table.routes if each.kind != "bytes" and each.of_tenant >= of_tenant]
    chosen = {
        each.name: each for each in sorted(usable, key=lambda each: (each.raw is None, each.of_tenant == of_tenant))
    }
    return {name: chosen[name] for name in dict.fromkeys(each.name for each in usable)}


def _route(reader: Reader, name: str) -> Route | None:
    """Return an operation's route in the page's place, whatever the caller's role."""
    return _routes(reader.table, reader.tenant["tenant_id"] is not None).get(name)


def routes(reader: Reader) -> dict[str, Route]:
    """Return the routes of the operations that the caller may carry out in the page's place, by name."""
    found = _routes(reader.table, reader.tenant["tenant_id"] is not None)
    return {name: each for name, each in found.items() if reader.caller.role.covers(each.role)}


def _query(route: Route, asked: Mapping[str, str]) -> Values:
    """Return the arguments in a query.

    Raises:
        Refused: request_invalid.
    """
    model = query_of(route)
    if model is None:
        return {}
    try:
        return given(model.model_validate({name: text for name, text in asked.items() if name in model.model_fields}))
    except ValidationError as wrong:
        raise not_valid(field_errors(wrong), "query", dict(asked), model.model_fields) from None


def _present(reader: Reader, route: Route, asked: Mapping[str, str], path: Values) -> Values:
    """Return the stored values of what an operation edits, by the names of its parameters; nothing for what is new."""
    reading = _route(reader, f"{route.noun}.get")
    if reading is None or not route.changes or {each.name for each in reading.at("path")} != path.keys():
        return {}
    needed = {each.name for each in reading.at("query") if each.needed}
    if not needed <= asked.keys():
        return {}
    found = reader.find(reading.name, **path, **{name: asked[name] for name in needed})
    record: Values | None = to_jsonable(found)
    if record is None:
        return {}
    record |= {"_match": etag(found)}
    if route.method == "POST":  # no change of what is stored
        return {"params": record.get("params")}
    conduct: Values = record.get("conduct", {})
    return record | conduct | _rules(record)


def _rules(record: Values) -> Values:
    """Return the rules and the script of a schedule as they are given."""
    rules = record.get("rules")
    if not isinstance(rules, dict):
        return {}
    steps = [each["script"] if each.keys() == {"script"} else each for each in record["steps"]]
    texts = {name: "\n".join(each["text"] for each in rules[name]) for name in ("rules", "exclusions")}
    return rules | texts | {"script": steps[0] if len(steps) == 1 else steps}


def _is_shown(route: Route, parameter: Parameter, tenant: str | None) -> bool:
    """Whether the form of an operation has a field for a parameter; not for the tenant of the page, a cursor or a file."""
    name = parameter.name
    return name not in {"cursor", route.raw} and (name != "tenant_id" or parameter.place != "path" or tenant is None)


def _field(route: Route, parameter: Parameter, present: Mapping[str, Any]) -> Field:
    """Return the form field of a parameter."""
    kind, choices = kind_of(parameter)
    name = parameter.name
    about = explained(route.function).get(name) or WORDS.get(name, "")
    default = "" if parameter.needed or parameter.shown in (None, ()) else _text(to_jsonable(parameter.shown), kind)
    value = "" if (found := present.get(name)) in (None, []) else _text(found, kind)
    kind = "secret" if name in SECRETS and route.declared.secret else kind
    return Field(name, _(rendering.title(name)), kind, about, parameter.needed, default, choices, value)


def kind_of(parameter: Parameter) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a parameter's field, and the words to choose from."""
    schema = adapter(parameter.kind).json_schema()
    options = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    kinds = {each.get("type") for each in options}
    one = options[0]
    if len(options) > 1 or "$ref" in one:
        return ("json" if "string" not in kinds else "mixed" if "array" in kinds else "source"), ()
    if one.get("enum"):
        return "choice", tuple(one["enum"])
    if one.get("type") == "array":
        return ("words" if one["items"].get("type") == "string" else "json"), ()
    if one.get("format") == "date-time":
        return "instant", ()
    return {"string": "text", "integer": "number", "number": "number", "boolean": "boolean"}.get(
        one.get("type"), "json"
    ), ()


def _text(value: Any, kind: str) -> str:
    """Return a JSON value as it is typed into a field of this kind, which reads the same value from it."""
    if kind == "words" and isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, str) and kind != "json" else json.dumps(value, ensure_ascii=False)


def records(reader: Reader, name: str, result: Any) -> list[tuple[Values, list[Link]]]:
    """Return the fields of each record of an operation's result, as they are shown, with the operations on it."""
    noun, known = name.partition(".")[0], routes(reader).items()
    inner = {key: each for key, each in known if noun[:-1] in {of.name for of in each.at("path")}}
    others = {key: each for key, each in known if each.noun == noun and key != name} | inner
    found = [_record(each) for each in (result if isinstance(result, list) else [result])]
    names = dict.fromkeys(name for each in found for name in each)
    kept = [name for name in names if any(each.get(name) not in (None, "", [], {}, ()) for each in found)]
    if reader.tenant["tenant_id"] is not None:
        kept = [name for name in kept if name != "tenant_id"]
    return [({name: _shown(each.get(name)) for name in kept}, list(_links(reader, others, each))) for each in found]


def _links(reader: Reader, others: Mapping[str, Route], record: Values) -> Iterable[Link]:
    """Yield those operations that are about one object, each for this one."""
    tenant = reader.tenant["tenant_id"]
    for name, other in others.items():
        places = [each.name for each in other.at("path") if each.name != "tenant_id"]
        needed = dict.fromkeys([*places, *(each.name for each in other.parameters if each.needed)])
        found = {each: record[each] for each in needed if isinstance(record.get(each), str)}
        # The first part of the path that the record does not name is its own.
        if (own := next((each for each in places if each not in found), None)) is not None:
            by = ("id",) if own in {"token", "node", "action_id"} else ("name", "id")
            found |= dict([(own, record[each]) for each in by if isinstance(record.get(each), str)][:1])
        if places and places[0] in found:
            of = {"tenant_id": record["tenant_id"]} if other.of_tenant and record.get("tenant_id") else {}
            given = found | (of if tenant is None else {"tenant_id": tenant})
            query = urlencode(found | (of if tenant is None else {}))
            fills = {each.name for each in other.at("path")} <= given.keys() and not (
                other.at("query") or other.at("body")
            )
            # Of names that a server reads as other paths the form says so.
            if other.method == "GET" or not fills or not all(map(is_segment, given.values())):
                yield Link(name, query, "", "")
            else:
                path = _path(other, tenant).format_map({key: quote(each, safe="") for key, each in given.items()})
                yield Link(name, query, f"{other.method} {path}", _question(other, tenant).format_map(given))


def _record(value: Any) -> Values:
    """Return a result's fields by name, in JSON form."""
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return dict(value) if isinstance(value, Mapping) else {"value": value}


def _shown(value: Any) -> str:
    """Return a value of a record for people."""
    if isinstance(value, datetime) or value is None:
        return rendering.instant(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    plain = to_jsonable(value)
    if isinstance(plain, list) and all(isinstance(each, str) for each in plain):
        return ", ".join(plain)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
