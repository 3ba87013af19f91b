"""One verb of the engine as a route: method, path, who may, and what its arguments are called in path, query and body.

All of it is read from the verb's own signature, so that Python, HTTP and the client cannot drift apart.
"""

import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AwareDatetime, BeforeValidator, Field, TypeAdapter

from lodger.engine.core.access.roles import Role
from lodger.engine.service.nouns.noun import UNCHANGED
from lodger.engine.store.records import Page

#: Where version 1 of the API begins.
ROOT = "/api/v1"
#: Whole numbers are kept as 32 bits by the narrower of the databases.
MOST_INT = 2**31 - 1

_READER: TypeAdapter[datetime] = TypeAdapter(AwareDatetime)

#: Where an argument goes.
Place = Literal["path", "query", "body"]
#: What the answer is: a JSON value, a page of them, nothing, bytes, or lines that go on.
Answer = Literal["json", "page", "nothing", "bytes"]

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]", re.ASCII)
_NAMES = re.compile(r"{(\w+)}")
#: References for readers of the source, which readers of the API have no use for.
_ROLES = re.compile(r":\w+:(`[^`]*`)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a verb."""

    name: str
    place: Place
    #: What JSON or text may say: the verb's annotation without what only Python can give.
    kind: Any
    #: ``inspect.Parameter.empty`` where it must be given.
    default: Any

    @property
    def needed(self) -> bool:
        """Whether it must be given."""
        return self.default is inspect.Parameter.empty

    @property
    def shown(self) -> Any:  # noqa: ANN401 - any default
        """Give the default that the documentation shows; None where leaving out has a meaning of its own."""
        return None if self.default is UNCHANGED else self.default


@dataclass(frozen=True)
class Route:
    """One verb.

    Attributes:
        noun, verb: as in ``engine.tenants.create``.
        function: the verb's function.
        path: after :data:`ROOT`; names in braces are arguments.
        role: the least that may.
        status: of a good answer.
        raw: the argument that the body's bytes are, when it is no JSON.
        secret: the request or the answer holds a secret: nothing of it is kept for an idempotency key.
        page: most entries that one request may ask for.
    """

    method: str
    path: str
    noun: str
    verb: str
    function: Callable[..., Any]
    role: Role
    status: int = 200
    raw: str | None = None
    media: str = "application/json"
    secret: bool = False
    most: int = 1000

    @property
    def name(self) -> str:
        """Give the verb's full name."""
        return f"{self.noun}.{self.verb}"

    @property
    def changes(self) -> bool:
        """Whether it may change something."""
        return self.method not in {"GET", "HEAD"} and self.name not in READING

    @property
    def long(self) -> bool:
        """Whether it takes seconds, because it starts walls of its own or reads a whole archive."""
        return self.name in LONG or self.raw is not None

    @property
    def tagged(self) -> bool:
        """Whether it changes a thing that has an ETag, so that If-Match can be asked of it."""
        return self.name in TAGGED

    @property
    def of_tenant(self) -> bool:
        """Whether its path names a tenant; all others are the platform's, but those that name nobody's things."""
        return "{tenant_id}" in self.path

    @cached_property
    def everywhere(self) -> bool:
        """Whether its verb wants to be told whose, and this route asks for anybody's."""
        told = inspect.signature(self.function).parameters.get("tenant_id")
        if self.of_tenant or told is None or told.default is not inspect.Parameter.empty:
            return False
        return type(None) in get_args(get_type_hints(self.function)["tenant_id"])

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every argument of the verb, in its order."""
        in_path = set(_NAMES.findall(self.path))
        hints = get_type_hints(self.function)
        found = []
        for name, given in list(inspect.signature(self.function).parameters.items())[1:]:
            place: Place = "path" if name in in_path else "query" if self.method == "GET" or self.raw else "body"
            # Who may see everybody's leaves it out.
            default = None if name == "tenant_id" and self.everywhere else given.default
            if given.kind is inspect.Parameter.VAR_POSITIONAL:
                found.append(Parameter(name, place, list[wire(hints[name])], inspect.Parameter.empty))  # type: ignore[misc]  # a type made at run time
                continue
            found.append(Parameter(name, place, wire(hints[name]), default))
        return tuple(found)

    def at(self, place: Place) -> tuple[Parameter, ...]:
        """Give the arguments that go there; a raw body is none of them."""
        return tuple(each for each in self.parameters if each.place == place and each.name != self.raw)

    @cached_property
    def answer(self) -> Any:  # noqa: ANN401 - an annotation
        """What the verb's annotation says that it gives."""
        return get_type_hints(self.function).get("return", Any)

    @cached_property
    def kind(self) -> Answer:
        """What the answer is."""
        if self.answer is type(None):
            return "nothing"
        if self.answer is bytes:
            return "bytes"
        return "page" if get_origin(self.answer) is Page else "json"

    @property
    def summary(self) -> str:
        """Give the first sentence of the verb's documentation."""
        return self.described.partition("\n\n")[0].replace("\n", " ")

    @property
    def described(self) -> str:
        """Give the verb's documentation."""
        return _ROLES.sub(r"\1", inspect.getdoc(self.function) or "")

    @property
    def identity(self) -> str:
        """Give the operation's id."""
        suffix = "_module" if self.noun == "scripts" and (self.raw or self.kind == "bytes") else ""
        elsewhere = not self.of_tenant and self.noun in OF_TENANTS and self.name not in READING
        everywhere = "_everywhere" if elsewhere else ""
        return f"{self.noun}_{self.verb}{suffix}{everywhere}"


#: Nouns whose things belong to tenants: listed without one they are everybody's.
OF_TENANTS = {"schedules", "actions", "audit"}
#: Verbs that ask with a body and change nothing.
READING = {"schedules.preview", "schedules.what_if", "scripts.check", "scripts.dry_run"}

#: Verbs that start walls of their own.
LONG = {"scripts.put", "scripts.check", "scripts.dry_run"}


#: Verbs that change a thing which has an ETag.
TAGGED = {
    "tenants.edit", "tenants.suspend", "tenants.resume", "tenants.delete", "scripts.put", "scripts.put_ping", "scripts.rollback",
    "schedules.edit", "schedules.rollback", "schedules.pause", "schedules.resume", "schedules.delete", "tokens.revoke",
    "grants.people", "grants.keep", "grants.give", "grants.take", "webhooks.put", "webhooks.renew", "webhooks.delete",
}  # fmt: skip


def _instant(given: object) -> datetime:
    if not isinstance(given, str) or not _DATE.match(given):
        raise ValueError("an instant is a text such as 2027-01-01T09:00:00Z")
    return _READER.validate_python(given)


#: An instant on the wire: text with a zone, never a number.
Instant = Annotated[datetime, BeforeValidator(_instant)]
Whole = Annotated[int, Field(ge=-MOST_INT - 1, le=MOST_INT)]


def wire(hint: Any) -> Any:  # noqa: ANN401 - annotations in, annotations out
    """Give what JSON can say of an annotation: lists for sequences, objects for mappings; what only Python has is left out."""
    if hint is datetime:
        return Instant
    if hint is int:
        return Whole
    origin, inside = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        kept = [wire(each) for each in inside if each not in {timedelta, bytes}]
        return Union[tuple(kept)]  # noqa: UP007 - made at run time
    if origin in {Sequence, Iterable, list}:
        return list[wire(inside[0])] if inside else list[Any]  # type: ignore[misc]  # made at run time
    if origin in {Mapping, dict}:
        return dict[str, wire(inside[1])] if inside else dict[str, Any]  # type: ignore[misc]  # made at run time
    return hint
