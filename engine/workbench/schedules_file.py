"""``schedules.toml``: the schedules, the settings of scripts and the data for development of a folder.

A table ``[schedules.NAME]`` has the parameters of ``schedules.create``, a table ``[scripts.NAME]`` those of ``scripts.put``: both are
read from the declared operations, so that a new parameter is a new key.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ValidationError

from lodger.engine.core import toml_places
from lodger.engine.core.access import grants, names
from lodger.engine.core.errors import InputError
from lodger.engine.core.params import read_fields
from lodger.engine.core.serialization import from_jsonable, to_jsonable
from lodger.engine.features import TABLE
from lodger.engine.output import script_files
from lodger.engine.policy.conduct import Conduct, parse_placement
from lodger.engine.policy.plan import parse_missed, parse_overlap
from lodger.engine.policy.retry import parse_retry
from lodger.engine.recurrence.compile import compile_schedule, with_present_starts
from lodger.engine.recurrence.rule import DstPolicy, ScheduleRules
from lodger.engine.service.nouns.base import specs
from lodger.engine.service.operations.route import Parameter
from lodger.engine.store.records import Schedule
from lodger.engine.workbench.findings import Finding, nearest
from lodger.sandbox import prescan

NAME = "schedules.toml"
#: Maximum size of the file and number of its schedules; a larger folder is more than one.
MAX_BYTES, MAX_SCHEDULES = 4 * 1024 * 1024, 2000
#: Parameters of the operations that are no state: what identifies the object, and what belongs to one request.
_NO_STATE = frozenset({"tenant_id", "name", "source", "first_after", "why", "offered", "after_version", "force"})
#: Keys of the file itself.
TOP = ("name", "schedules", "scripts", "dev")
#: JSON text in place of params that TOML cannot say, because they have null in them.
PARAMS_JSON = "params_json"
_PARTS = ("missed", "overlap", "retry", "limits", "grants", "labels", "placement", "priority", "params")


@cache
def keys(operation: str) -> dict[str, Parameter]:
    """Return the keys that a table of the file may have, with the parameters of this operation that they stand for."""
    route = next(each for each in TABLE.routes_of(operation) if each.raw is None)
    return {each.name: each for each in route.parameters if each.name not in _NO_STATE}


@dataclass(frozen=True, slots=True)
class Dev:
    """Data for development: first rows of a throw-away ledger of ``lodger dev`` and ``lodger test``.

    Attributes:
        grants: grants of the tenant in addition to the defaults.
        people: addresses to which scripts may send mail.
        collections: documents by collection.
        kv: values by key.
    """

    grants: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    collections: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    kv: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchedulesFile:
    """The content of the file; invalid parts are left out and are among the findings.

    Attributes:
        name: name of the deployment, which marks what ``lodger deploy`` makes.
        schedules, scripts: arguments of the operations, by name.
        places: line and column by path.
    """

    name: str
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)
    scripts: dict[str, dict[str, Any]] = field(default_factory=dict)
    dev: Dev = field(default_factory=Dev)
    places: dict[tuple[str, ...], toml_places.Position] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def finding(self, path: tuple[str, ...], code: str, message: str, fix: str = "") -> Finding:
        """Return the error at a key, or at the nearest table around it."""
        return _finding(self.places, path, code, message, fix)


def read(path: Path, default_name: str) -> SchedulesFile:
    """Read a file; an absent one is empty. Nothing is raised: all mistakes are findings."""
    try:
        text = script_files.regular(path, MAX_BYTES)
    except FileNotFoundError:
        return SchedulesFile(default_name)
    except (OSError, ValueError) as error:
        return SchedulesFile(default_name, findings=(_whole(f"the file cannot be read: {error}"),))
    return read_text(text, default_name)


def read_text(text: str, default_name: str) -> SchedulesFile:
    """Read the text of a file. Nothing is raised: all mistakes are findings."""
    try:
        body = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, (line, column) = toml_places.error_place(error, text)
        wrong = Finding("error", NAME, "toml_invalid", message, "see https://toml.io", line, column)
        return SchedulesFile(default_name, findings=(wrong,))
    except RecursionError:
        return SchedulesFile(default_name, findings=(_whole("the file is nested too deeply"),))
    return _Reader(body, toml_places.places(text)).read(default_name)


def _whole(message: str) -> Finding:
    """Return a finding about the whole file, without a line."""
    return Finding("error", NAME, "toml_invalid", message)


class _Reader:
    """One reading of a file: collects findings at the places of their keys."""

    def __init__(self, body: dict[str, Any], places: dict[tuple[str, ...], toml_places.Position]) -> None:
        self._body = body
        self._places = places
        self._findings: list[Finding] = []

    def read(self, default_name: str) -> SchedulesFile:
        """Return the content of schedules.toml, checked."""
        body = self._body
        for key in body:
            if key not in TOP:
                self._note((key,), "toml_key_unknown", f"there is no key {key!r}", nearest(key, TOP))
        name = body.get("name", default_name)
        if not isinstance(name, str) or not names.NAME_LENGTH >= len(name.strip()) > 0 or not name.isprintable():
            self._note(("name",), "name_invalid", "the name is not a printable text", 'name = "shop"')
            name = default_name
        schedules = self._tables("schedules", "schedules.create")
        if len(schedules) > MAX_SCHEDULES:
            self._note(("schedules",), "schedules_full", f"there are more than {MAX_SCHEDULES} schedules")
            schedules = {}
        for schedule, table in list(schedules.items()):
            self._check_schedule(schedule, table)
        scripts = self._tables("scripts", "scripts.put")
        for script, table in scripts.items():
            self._try(("scripts", script, "params"), read_fields, table.get("params"))
            self._try(("scripts", script, "grants"), grants.parse, table.get("grants") or ())
        dev = self._dev()
        return SchedulesFile(name, schedules, scripts, dev, self._places, tuple(self._findings))

    def _note(self, path: tuple[str, ...], code: str, message: str, fix: str = "") -> None:
        """Add an error at the place of a key."""
        self._findings.append(_finding(self._places, path, code, message, fix))

    def _tables(self, kind: str, operation: str) -> dict[str, dict[str, Any]]:
        """Return the tables of a kind, such as all schedules, checked."""
        tables = self._body.get(kind, {})
        if not isinstance(tables, dict):
            self._note((kind,), "toml_key_invalid", f"{kind} is not a table", f"write [{kind}.NAME]")
            return {}
        found = {}
        for name, table in tables.items():
            path = (kind, name)
            if not isinstance(table, dict):
                self._note(path, "toml_key_invalid", f"{kind}.{name} is not a table", f"write [{kind}.NAME]")
            elif self._try(path, names.check, name, "name_invalid.table"):
                found[name] = self._fields(path, table, keys(operation))
        return found

    def _fields(self, path: tuple[str, ...], given: dict[str, Any], known: Mapping[str, Parameter]) -> dict[str, Any]:
        """Return the arguments of an operation: each key is known, and its value of the operation's type."""
        given = self._with_params(path, given, known)
        found = self._decoded(path, given, {key: parameter.kind for key, parameter in known.items()})
        for key, parameter in known.items():
            if parameter.needed and key not in given:
                self._note(path, "toml_key_missing", f"{'.'.join(path)} has no {key}", f'write {key} = "…"')
        return found

    def _decoded(
        self, path: tuple[str, ...], given: dict[str, Any], kinds: Mapping[str, Any], *, marked: bool = False
    ) -> dict[str, Any]:
        """Return the values of a table's keys that are known, and of their types; others are findings."""
        found: dict[str, Any] = {}
        for key, value in given.items():
            if key not in kinds:
                self._note((*path, key), "toml_key_unknown", f"there is no key {key!r}", nearest(key, kinds))
                continue
            try:
                given_json = toml_places.as_json(value, marked=marked)
                found[key] = from_jsonable(kinds[key], given_json)
                self._check_members((*path, key), found[key], given_json)
            except (ValueError, RecursionError) as error:
                said = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else error
                self._note((*path, key), "toml_key_invalid", f"{key} has a wrong value: {said}")
        return found

    def _check_members(self, path: tuple[str, ...], value: Any, given: Any) -> None:
        """Note the members of objects that their type does not have."""
        if isinstance(given, list) and isinstance(value, list):
            for each, of in zip(value, given, strict=True):
                self._check_members(path, each, of)
        elif is_dataclass(value) and isinstance(given, dict):
            known = [each.name for each in fields(value)]
            for key in given.keys() - set(known):
                self._note(path, "toml_key_unknown", f"{path[-1]} has no key {key!r}", nearest(key, known))

    def _with_params(
        self, path: tuple[str, ...], given: dict[str, Any], known: Mapping[str, Parameter]
    ) -> dict[str, Any]:
        """Return a table's keys with the JSON text of ``params_json`` as ``params``; a text that is no JSON is a finding."""
        if PARAMS_JSON not in given or "params" not in known:
            return given
        left = {key: value for key, value in given.items() if key != PARAMS_JSON}
        try:
            return left | {"params": prescan.decode(given[PARAMS_JSON])}
        except (ValueError, TypeError) as error:
            self._note(
                (*path, PARAMS_JSON), "toml_key_invalid", f"{PARAMS_JSON} is not JSON text: {error.__cause__ or error}"
            )
            return left

    def _check_schedule(self, name: str, table: dict[str, Any]) -> None:
        """Make the operation's checks beyond the types: policies, limits, grants, rules."""
        path = ("schedules", name)
        for key in _PARTS:
            if key in table:
                self._try((*path, key), normal_part, key, table[key])
        if "rules" in table:
            try:
                compile_schedule(rules_of(table))
            except InputError as error:
                position = error.details.get("rule", 0)
                excluded = isinstance(position, int) and position >= len(specs(table["rules"]))
                fix = error.fix or error.why
                self._note((*path, "exclusions" if excluded else "rules"), error.code, _said(error), fix)
                del table["rules"]

    def _try(self, path: tuple[str, ...], check: Any, *arguments: Any) -> bool:
        """Call a check; add its refusal as a finding at the place of a key; return whether it passed."""
        try:
            check(*arguments)
        except InputError as error:
            self._note(path, error.code, _said(error), error.fix or error.why)
            return False
        except (ValueError, TypeError, AttributeError) as error:
            self._note(path, "toml_key_invalid", str(error))
            return False
        return True

    def _dev(self) -> Dev:
        """Return the data for development of the table [dev], checked."""
        given = self._body.get("dev", {})
        if not isinstance(given, dict):
            self._note(("dev",), "toml_key_invalid", "dev is not a table", "write [dev]")
            return Dev()
        found = self._decoded(("dev",), given, get_type_hints(Dev), marked=True)
        if not self._try(("dev", "grants"), grants.parse, found.get("grants", ())):
            found.pop("grants")
        return Dev(**found)


def _finding(
    places: Mapping[tuple[str, ...], toml_places.Position], path: tuple[str, ...], code: str, message: str, fix: str
) -> Finding:
    """Return the error at a key, or at the nearest table around it."""
    near = (path[:depth] for depth in range(len(path), 0, -1) if path[:depth] in places)
    line, column = next((places[each] for each in near), (None, None))
    return Finding("error", NAME, code, message, fix, line, column)


def _said(error: InputError) -> str:
    """Return the text of an error as a finding shows it."""
    return f"{error.what}: {error.why}" if error.why and error.fix else error.what


# ---- one form of a schedule, in which a file and a ledger are compared


def rules_of(fields: Mapping[str, Any]) -> ScheduleRules:
    """Return the rules of a table's keys."""
    return ScheduleRules(
        specs(fields["rules"]), specs(fields.get("exclusions", ())), fields.get("tz"),
        fields.get("dst") or DstPolicy(), fields.get("start"), fields.get("end"),
    )  # fmt: skip


def normal_part(key: str, value: Any) -> Any:
    """Return the value of one key of a schedule in the form in which the ledger keeps it.

    Raises:
        InputError: what is wrong with it.
    """
    if key == "missed":
        return str(parse_missed(value))
    if key == "overlap":
        return parse_overlap(value).value
    if key == "retry":
        return parse_retry(value).as_dict()
    if key == "grants":
        return None if value is None else list(grants.parse(value).shown())
    if key in {"labels", "placement", "priority"}:
        given: dict[str, Any] = {key: parse_placement(value) if key == "placement" else value}
        return Conduct(**given).as_dict()[key]
    if key == "limits":
        from lodger.sandbox.errors import LimitInvalid
        from lodger.sandbox.limits import Limits

        try:
            Limits(**(value or {}))
        except LimitInvalid as error:
            raise InputError.of(error) from None
        except TypeError as error:
            raise InputError("limit_invalid.limits", reason=error, names=sorted(Limits.__dataclass_fields__)) from None
    return value


def normal_steps(wish: Any) -> list[dict[str, Any]]:
    """Return the steps of a schedule, each as an object."""
    given: Iterable[Any] = [wish] if isinstance(wish, str | Mapping) else wish
    steps = [dict(each) if isinstance(each, Mapping) else {"script": each} for each in given]
    return [
        {key: value for key, value in step.items() if value not in (None, {}) and (key, value) != ("version", "latest")}
        for step in steps
    ]


def script_names(fields: Mapping[str, Any]) -> list[str]:
    """Return the names of the scripts of a schedule's steps."""
    return [each["script"] for each in normal_steps(fields.get("script", ())) if isinstance(each.get("script"), str)]


def normal(fields: Mapping[str, Any], present: ScheduleRules | None = None) -> dict[str, Any]:
    """Return the whole state that a table asks for, defaults included, in the form of :func:`normal_record`.

    Args:
        present: the stored rules, whose starts are kept.

    Raises:
        InputError: what is wrong with it.
    """
    steps = normal_steps(fields["script"])
    if fields.get("version") not in (None, "latest"):
        steps = [steps[0] | {"version": fields["version"]}, *steps[1:]]
    conduct = Conduct(**{key: fields[key] for key in Conduct.__dataclass_fields__ if key in fields})
    rules = rules_of(fields)
    return {
        "script": steps,
        "rules": to_jsonable(rules if present is None else with_present_starts(rules, present)),
        "missed": normal_part("missed", fields.get("missed", keys("schedules.create")["missed"].default)),
        "overlap": normal_part("overlap", fields.get("overlap", keys("schedules.create")["overlap"].default)),
        "retry": normal_part("retry", fields.get("retry")),
        "limits": dict(fields.get("limits") or {}),
        "params": fields.get("params"),
        "grants": normal_part("grants", fields.get("grants")),
        **conduct.as_dict(),
    }


def normal_record(schedule: Schedule) -> dict[str, Any]:
    """Return the state of a stored schedule in the form of :func:`normal`."""
    return {
        "script": normal_steps(schedule.steps),
        "rules": to_jsonable(schedule.rules),
        **{name: getattr(schedule, name) for name in ("missed", "overlap", "retry", "limits", "params")},
        "grants": None if schedule.grants is None else list(schedule.grants),
        **schedule.conduct,
    }


_NAME_CHARACTERS = re.compile(r"[^\w.-]+")


def default_name(folder: Path) -> str:
    """Return the name of a deployment if the file gives none: the folder's."""
    return _NAME_CHARACTERS.sub("-", folder.resolve().name) or "lodger"
