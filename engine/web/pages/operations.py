"""Pages made from the declared operations: an index, a form for each, and the results of those that read."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from pydantic import ValidationError

from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.serialization import adapter, to_jsonable
from lodger.engine.server.openapi import given, query_of
from lodger.engine.server.operation_call import etag
from lodger.engine.server.problems import field_errors, not_valid
from lodger.engine.service.operations.help_texts import WORDS, explained, plain, summary
from lodger.engine.service.operations.route import Parameter, Route
from lodger.engine.store.records import Action, Schedule
from lodger.engine.web import rendering
from lodger.engine.web.listing import in_order
from lodger.engine.web.page import PAGE, Reader, Values
from lodger.engine.web.texts import _

#: Pages that show what an operation answers, below the tenant's.
SHOWN_AT: dict[Any, str] = {Action: "/actions/{answer.id}", Schedule: "/schedules/{answer.name}"}
#: Titles of fields whose names are short.
TITLES = {
    "tz": "Time zone", "dst": "Daylight saving time", "params": "Input", "jitter_s": "Jitter, seconds", "action_id": "Action",
    "expires_s": "Expires after, seconds", "tenant_id": "Tenant", "n": "Number", "late_s": "Late after, seconds",
    "overran_s": "Overran after, seconds", "silent_s": "Silent after, seconds", "grace_s": "Later than, seconds",
}  # fmt: skip
#: Characters of an instant to the second, as fields have it.
SECONDS = 19
#: Characters of a value that a table shows on one line.
LONG = 60


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an operation's form.

    Attributes:
        kind: text, number, boolean, choice, instant, words (a list of texts), mixed (a text, one for each line, or JSON), source (a text,
            or a JSON object) or json.
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


def operations(reader: Reader) -> tuple[str, Values]:
    """Return the page with the operations that the caller may carry out: its template and values."""
    if (tenant := reader.tenant["tenant_id"]) is not None:
        reader.ask("tenants.get", tenant_id=tenant)
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, route in routes(reader).items():
        groups.setdefault(route.noun, []).append((name, summary(route.function)))
    return "operations.html", {"groups": groups}


def asked(reader: Reader) -> tuple[str, Values]:
    """Return the operation whose page lists its answer, with its arguments.

    Raises:
        NotFound: operation_unknown.
    """
    name, given = reader.request.path_params["operation"], dict(reader.request.query_params)
    route = _route(reader, name)
    if route is None or route.method != "GET" or not reader.caller.role.covers(route.role):
        raise NotFound("operation_unknown", name=name)
    of_path: Values = {each.name: given.get(each.name) for each in route.at("path")}
    path = of_path | (reader.tenant if route.of_tenant and reader.tenant["tenant_id"] else {})
    if None in path.values():
        raise NotFound("operation_unknown", name=name)
    return name, path | _query(route, {name: text for name, text in given.items() if text and name != "cursor"})


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
    names = {key: each for key, each in routes(reader).items() if key != name}
    others = {key: each for key, each in names.items() if each.noun == route.noun}
    inner = {key: each for key, each in names.items() if route.noun[:-1] in {of.name for of in each.at("path")}}
    result = refusal = None
    paged = {"limit", "cursor"} <= {each.name for each in route.parameters}
    if route.method == "GET" and allowed and complete:
        try:
            result = reader.ask(name, **path, **({"limit": PAGE} if paged else {}) | _query(route, asked))
            result = in_order(reader, result) if isinstance(result, list) and not paged else result
        except InputError as error:
            if asked:
                raise
            refusal = error  # nothing was asked that could be wrong: the engine is not set up for it
    stored = _present(reader, route, asked, path) if complete and allowed else {}
    present = asked | stored
    shown = [_field(route, each, present) for each in route.parameters if _is_shown(each, tenant)]
    call = route.path if tenant is None else route.path.replace("{tenant_id}", quote(tenant, safe=""))
    return "operation.html", {
        "route": route,
        "title": title_of,
        "match": stored.get("_match") if route.declared.tagged and route.method in {"PUT", "PATCH"} else None,
        "help": plain(route.described.partition("\n\nArgs:")[0].partition("\n\nRaises:")[0]),
        "allowed": allowed,
        "fields": shown,
        "zone": present.get("tz") if route.noun == "schedules" else None,
        "call": f"{route.method} {call}",
        "confirm": _question(route, tenant),
        "then": f"{reader.root}/t/{{answer.tenant_id}}{at}"
        if route.changes and (at := SHOWN_AT.get(route.answer))
        else "",
        "was": {each.name: each.value[:SECONDS] if each.kind == "instant" else each.value for each in shown},
        "seconds": SECONDS,
        "rows": None if result is None else _rows(reader, others | inner, result),
        "refusal": refusal,
        "others": others,
        "listed": isinstance(result, list),
        "paged": paged,
        "long": LONG,
        "next": urlencode(asked | {"cursor": cursor}) if (cursor := getattr(result, "next", None)) else None,
    }


def _question(route: Route, tenant: str | None) -> str | None:
    """Return what is asked before an operation that cannot be taken back, with the names of fields in braces."""
    asked = route.declared.confirm or (rendering.verb(route.name) if route.method == "DELETE" else None)
    asked = asked if asked is None or tenant is None else asked.replace("{tenant_id}", tenant)
    return asked and f"{asked[0].upper()}{asked[1:]}?"


def _route(reader: Reader, name: str) -> Route | None:
    """Return an operation's route in the page's place: a tenant's, or the platform's if it has one. None for another's, and for bytes."""
    found = [each for each in reader.table.routes if each.name == name and not each.raw and each.kind != "bytes"]
    of_tenant = reader.tenant["tenant_id"] is not None
    return next((each for each in found if each.of_tenant == of_tenant), None if of_tenant or not found else found[0])


def routes(reader: Reader) -> dict[str, Route]:
    """Return the routes of the operations that the caller may carry out in the page's place, by name."""
    found = {name: _route(reader, name) for name in dict.fromkeys(each.name for each in reader.table.routes)}
    return {name: each for name, each in found.items() if each is not None and reader.caller.role.covers(each.role)}


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


def _is_shown(parameter: Parameter, tenant: str | None) -> bool:
    """Whether the form of an operation has a field for a parameter; not for the tenant of the page, nor for a cursor."""
    return parameter.name != "cursor" and (parameter.name != "tenant_id" or parameter.place != "path" or tenant is None)


def _field(route: Route, parameter: Parameter, present: Mapping[str, Any]) -> Field:
    """Return the form field of a parameter."""
    kind, choices = kind_of(parameter)
    name = parameter.name
    about = explained(route.function).get(name) or WORDS.get(name, "")
    default = "" if parameter.needed or parameter.shown in (None, ()) else _text(to_jsonable(parameter.shown), kind)
    value = "" if (found := present.get(name)) in (None, []) else _text(found, kind)
    return Field(
        name,
        _(title_of(name)),
        kind,
        about,
        parameter.needed,
        default,
        choices,
        value,
    )


def title_of(name: str) -> str:
    """Return the title of a parameter's field, in English."""
    return TITLES.get(name) or rendering.title(name)


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


def _rows(reader: Reader, others: Mapping[str, Route], result: Any) -> list[tuple[Values, list[tuple[str, str]]]]:
    """Return the fields of each record of a result, as they are shown, with the operations on it by name and query."""
    records = [_record(each) for each in (result if isinstance(result, list) else [result])]
    names = dict.fromkeys(name for each in records for name in each)
    kept = [name for name in names if any(each.get(name) not in (None, "", [], {}, ()) for each in records)]
    if reader.tenant["tenant_id"] is not None:
        kept = [name for name in kept if name != "tenant_id"]
    return [({name: _shown(each.get(name)) for name in kept}, list(_links(reader, others, each))) for each in records]


def _links(reader: Reader, others: Mapping[str, Route], record: Values) -> Iterable[tuple[str, str]]:
    """Yield those operations that are about one object, each with the query for this one."""
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
            yield name, urlencode(found | (of if reader.tenant["tenant_id"] is None else {}))


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
