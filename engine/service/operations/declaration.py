"""Declares a verb of the engine as an operation: one decorator on its typed function, from which every surface is made.

The decorator leaves the function unchanged and stores on it how HTTP and the command line offer it. To a type checker
the verb is a :class:`Method`: called on a noun of a synchronous engine or client it returns its result, on an
asynchronous one a coroutine of it, with the same parameters. No surface repeats a signature.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, final, overload

from lodger.engine.core.access.roles import Role

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
#: Whether a noun's verbs block or are awaited: :class:`Sync` or :class:`Async`.
M = TypeVar("M")

_NOTE = "__lodger_operation__"


@final
class Sync:
    """Verbs block and return their result."""


@final
class Async:
    """Verbs are coroutine functions."""


class _Unset:
    """The default of an omitted parameter, where None has a meaning."""

    def __repr__(self) -> str:
        return "unchanged"


UNCHANGED: Any = _Unset()
#: A connection of SQLAlchemy, Django, psycopg or sqlite3 to the ledger's database, which a verb of a local engine joins.
Joinable = Any
#: Parameter that only a local engine has.
JOINED = "connection"


class Operations(Generic[M]):
    """Base of every class with methods that are operations."""

    __slots__ = ()


class Method(Generic[P, R]):
    """Type of a verb for a type checker. At run time it is the plain function."""

    @overload
    def __get__(self, noun: None, owner: type) -> Callable[Concatenate[Any, P], R]: ...
    @overload
    def __get__(self, noun: Operations[Sync], owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, noun: Operations[Async], owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, noun: Any, owner: type) -> Any:
        raise NotImplementedError


class Stream(Generic[P, T]):
    """Type of a verb that yields its result, for a type checker."""

    @overload
    def __get__(self, noun: None, owner: type) -> Callable[Concatenate[Any, P], Generator[T]]: ...
    @overload
    def __get__(self, noun: Operations[Sync], owner: type) -> Callable[P, Generator[T]]: ...
    @overload
    def __get__(self, noun: Operations[Async], owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, noun: Any, owner: type) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method and path of an operation.

    Attributes:
        path: after the API's root; names in braces are parameters.
        role: lowest role that may call it.
        status: status of a success.
        raw: the parameter that is the request's body as bytes, where that is not JSON.
        media: type of the raw body, or of a result that is bytes.
        twin: whether it is the variant over all tenants of an endpoint with the tenant in its path.
    """

    method: str
    path: str
    role: Role
    status: int = 200
    raw: str | None = None
    media: str = "application/json"
    twin: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """Properties of a verb that the decorator stores.

    Attributes:
        endpoints: none for a verb that only a local engine has.
        local: the reason for that.
        reads: it changes nothing, although its method is not GET.
        stores: it stores data of the tenant, and is refused if the tenant's storage is full.
        requests: the same, if it is given params, which count as history.
        slow: it takes seconds, because it starts its own sandbox.
        home: of several ledgers the first one answers it alone.
        in_all: each of several ledgers carries it out.
        tagged: it changes a resource with an ETag, so that If-Match is accepted.
        secret: request or result contain a secret, so that no response is kept for an idempotency key.
        max_page: maximum number of entries of one page.
        streams: the result is a stream.
        command: its name on the command line; None for no command.
        arguments: positional arguments of the command, where the rule (:mod:`lodger.engine.cli.operations`) does not
            fit.
        items: key of a list in the command's JSON; the noun's or the verb's name if None.
        confirm: the question that the user must confirm.
        may_fail: a result that is None or False means that nothing was done: the command exits with 1.
    """

    endpoints: tuple[Endpoint, ...] = ()
    local: str | None = None
    reads: bool = False
    stores: bool = False
    requests: bool = False
    slow: bool = False
    home: bool = False
    in_all: bool = False
    tagged: bool = False
    secret: bool = False
    max_page: int = 1000
    streams: bool = False
    command: str | None = ""
    arguments: tuple[str, ...] | None = None
    items: str | None = None
    confirm: str | None = None
    may_fail: bool = False

    @property
    def changes(self) -> bool:
        """Whether the verb changes the ledger."""
        return not self.reads and any(each.method not in {"GET", "HEAD"} for each in self.endpoints or [_LOCAL])


#: Stands for the endpoint of a verb that only a local engine has.
_LOCAL = Endpoint("POST", "", Role.ADMIN)


def operation(
    method: str,
    path: str,
    role: Role,
    *,
    status: int = 200,
    everywhere: bool | Role = False,
    raw: str | None = None,
    media: str = "application/json",
    also: Endpoint | None = None,
    **more: Any,
) -> Callable[[Callable[Concatenate[Any, P], R]], Method[P, R]]:
    """Declare a verb of a noun.

    Args:
        method, path, role, status, raw, media: see :class:`Endpoint`.
        everywhere: it may also be called without the tenant in the path, for all tenants, with this role; by default by an
            operator, and to read by an auditor.
        also: a second endpoint.
        more: see :class:`Declared`.
    """
    endpoint = Endpoint(method, path, role, status, raw, media)
    endpoints = [endpoint]
    if everywhere:
        of_all = path.removeprefix("/tenants/{tenant_id}")
        reads = method == "GET" or more.get("reads", False)
        default = Role.AUDITOR if reads and role is Role.VIEWER else Role.OPERATOR
        of_all_role = everywhere if isinstance(everywhere, Role) else default
        endpoints.append(replace(endpoint, path=of_all, role=of_all_role, twin=True))
    if also is not None:
        endpoints.append(also)

    def declare_operation(function: Callable[Concatenate[Any, P], R]) -> Method[P, R]:
        """Note on a verb's function that it is an operation with these endpoints."""
        setattr(function, _NOTE, Declared(tuple(endpoints), **more))
        return cast("Method[P, R]", function)

    return declare_operation


def local(reason: str) -> Callable[[Callable[Concatenate[Any, P], R]], Method[P, R]]:
    """Declare a verb that is not available over HTTP."""

    def declare_local(function: Callable[Concatenate[Any, P], R]) -> Method[P, R]:
        """Note on a verb's function that only Python has it, and why."""
        setattr(function, _NOTE, Declared(local=reason, command=None))
        return cast("Method[P, R]", function)

    return declare_local


def stream(reason: str) -> Callable[[Callable[Concatenate[Any, P], Generator[T]]], Stream[P, T]]:
    """Declare a verb that yields its result; ``reason`` says where HTTP offers it."""

    def declare_stream(function: Callable[Concatenate[Any, P], Generator[T]]) -> Stream[P, T]:
        """Note on a verb's function that it is a stream, which only Python has."""
        setattr(function, _NOTE, Declared(local=reason, command=None, streams=True))
        return cast("Stream[P, T]", function)

    return declare_stream


def declared(function: object) -> Declared | None:
    """Return the declaration of a function; None if it is not an operation."""
    return getattr(function, _NOTE, None)
