"""One endpoint of an operation: method, path, role, and the position of each parameter, read from the verb's signature."""

import inspect
import re
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AwareDatetime, BeforeValidator, Field, TypeAdapter

from lodger.engine.core.access.roles import Role
from lodger.engine.service.operations.declaration import JOINED, UNCHANGED, Declared, Endpoint
from lodger.engine.store.records import Page

#: Root path of version 1 of the API.
ROOT = "/api/v1"
#: The narrower of the databases stores integers in 32 bits.
MAX_INT = 2**31 - 1

_READER: TypeAdapter[datetime] = TypeAdapter(AwareDatetime)

#: Position of a parameter.
Place = Literal["path", "query", "body"]
#: Kind of a result: a JSON value, a page of them, nothing, or bytes.
Answer = Literal["json", "page", "nothing", "bytes"]

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]", re.ASCII)
_NAMES = re.compile(r"{(\w+)}")
#: Sphinx roles, which are removed from the API's description.
_ROLES = re.compile(r":\w+:(`[^`]*`)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a verb."""

    name: str
    place: Place
    #: The verb's annotation without types that exist only in Python.
    kind: Any
    #: ``inspect.Parameter.empty`` if the parameter is required.
    default: Any

    @property
    def key(self) -> str:
        """Name of the parameter in requests: generated clients collect a query in a variable ``params``, so no query has that name."""
        return "fields" if (self.place, self.name) == ("query", "params") else self.name

    @property
    def needed(self) -> bool:
        """Whether the parameter is required."""
        return self.default is inspect.Parameter.empty

    @property
    def shown(self) -> Any:
        """Default in the documentation; None if omission has a meaning of its own."""
        return None if self.default is UNCHANGED else self.default


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One verb of a noun, with its declaration.

    Attributes:
        noun, verb: as in ``engine.tenants.create``.
        function: the verb's function.
        declared: its declaration.
    """

    noun: str
    verb: str
    function: Callable[..., Any]
    declared: Declared

    @property
    def name(self) -> str:
        """Full name of the operation, such as ``tenants.create``."""
        return f"{self.noun}.{self.verb}"

    @property
    def is_slow(self) -> bool:
        """Whether the operation may take seconds: it starts a sandbox, or moves an archive or a module."""
        return self.declared.slow or any(
            each.raw or each.media == "application/gzip" for each in self.declared.endpoints
        )

    def call(self, engine: Any, arguments: Mapping[str, Any]) -> Any:
        """Carry out the operation on an engine or a client, with arguments by the names of its parameters."""
        bound = inspect.BoundArguments(inspect.signature(self.function), OrderedDict(arguments, self=engine))
        return getattr(getattr(engine, self.noun), self.verb)(*bound.args[1:], **bound.kwargs)


@dataclass(frozen=True, kw_only=True)
class Route(Endpoint, Operation):
    """One endpoint of one operation."""

    @property
    def changes(self) -> bool:
        """Whether the operation may change something."""
        return self.method not in {"GET", "HEAD"} and not self.declared.reads

    @property
    def long(self) -> bool:
        """Whether the operation takes seconds, because it starts its own sandbox or reads a whole archive."""
        return self.declared.slow or self.raw is not None

    @property
    def of_tenant(self) -> bool:
        """Whether the route's path contains a tenant."""
        return "{tenant_id}" in self.path

    @cached_property
    def everywhere(self) -> bool:
        """Whether the verb requires a tenant or None, and this route is for all tenants."""
        parameter = inspect.signature(self.function).parameters.get("tenant_id")
        if self.of_tenant or parameter is None or parameter.default is not inspect.Parameter.empty:
            return False
        return type(None) in get_args(get_type_hints(self.function)["tenant_id"])

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every parameter of the verb, in order."""
        in_path = set(_NAMES.findall(self.path))
        hints = get_type_hints(self.function)
        found = []
        for name, given in list(inspect.signature(self.function).parameters.items())[1:]:
            # A caller that may not see all tenants names one in the path, where its right is checked.
            if name == JOINED or (name == "tenant_id" and self.twin and self.role is Role.VIEWER):
                continue
            in_query = self.method in {"GET", "DELETE"} or self.raw
            place: Place = "path" if name in in_path else "query" if in_query else "body"
            # Callers with access to all tenants omit it.
            default = None if name == "tenant_id" and self.everywhere else given.default
            if given.kind is inspect.Parameter.VAR_POSITIONAL:
                found.append(Parameter(name, place, list[wire(hints[name])], inspect.Parameter.empty))  # type: ignore[misc]  # a type made at run time
                continue
            found.append(Parameter(name, place, wire(hints[name]), default))
        return tuple(found)

    def at(self, place: Place) -> tuple[Parameter, ...]:
        """Return the parameters at one position, without a raw body."""
        return tuple(each for each in self.parameters if each.place == place and each.name != self.raw)

    @cached_property
    def answer(self) -> Any:
        """Type annotation of the verb's result."""
        return get_type_hints(self.function).get("return", Any)

    @cached_property
    def kind(self) -> Answer:
        """How the result is sent: as json, bytes, a page of a list, or nothing."""
        if self.answer is type(None):
            return "nothing"
        if self.answer is bytes:
            return "bytes"
        return "page" if get_origin(self.answer) is Page else "json"

    @property
    def summary(self) -> str:
        """First sentence of the verb's documentation."""
        return self.described.partition("\n\n")[0].replace("\n", " ")

    @property
    def described(self) -> str:
        """The documentation of the operation's verb."""
        return _ROLES.sub(r"\1", inspect.getdoc(self.function) or "")

    @property
    def identity(self) -> str:
        """The operation's id in the OpenAPI description."""
        suffix = "_module" if self.noun == "scripts" and (self.raw or self.kind == "bytes") else ""
        everywhere = "_everywhere" if self.twin else ""
        return f"{self.noun}_{self.verb}{suffix}{everywhere}"


def _instant(given: object) -> datetime:
    """Return an instant from its text in JSON; an item of a batch in Python may have one itself."""
    if isinstance(given, datetime):
        return given
    if not isinstance(given, str) or not _DATE.match(given):
        raise ValueError("an instant is text such as 2027-01-01T09:00:00Z")
    return _READER.validate_python(given)


#: An instant on the wire: text with a zone, never a number.
Instant = Annotated[datetime, BeforeValidator(_instant)]
Whole = Annotated[int, Field(ge=-MAX_INT - 1, le=MAX_INT)]


def wire(hint: Any) -> Any:
    """Return the annotation of a parameter in JSON: lists for sequences, objects for mappings, without types that exist only in Python."""
    if hint is datetime:
        return Instant
    if hint is int:
        return Whole
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Literal:  # other spellings are accepted, and other words are refused with an error that names these
        return Annotated[str, Field(json_schema_extra={"enum": list(inside)})]
    if origin in {Union, types.UnionType}:
        kept = [wire(each) for each in inside if each not in {timedelta, bytes}]
        return Union[tuple(kept)]  # noqa: UP007 - made at run time
    if origin in {Sequence, Iterable, list}:
        return list[wire(inside[0])] if inside else list[Any]  # type: ignore[misc]  # made at run time
    if origin in {Mapping, dict}:
        return dict[str, wire(inside[1])] if inside else dict[str, Any]  # type: ignore[misc]  # made at run time
    return hint
