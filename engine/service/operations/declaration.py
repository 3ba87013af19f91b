"""Declares a verb of the engine as an operation: one decorator on its typed function, from which every surface is made.

The decorator leaves the function as it is and notes on it how HTTP and the command line offer it. To a type checker the verb is
a :class:`Method`: called on a noun of a synchronous engine or client it gives its result, on an asynchronous one an awaitable of
it, with the same parameters. No surface repeats a signature.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, final, overload

from lodger.engine.core.access.roles import Role

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
#: How a noun's verbs are called: :class:`Sync` or :class:`Async`.
M = TypeVar("M")

_NOTE = "__lodger_operation__"


@final
class Sync:
    """Verbs block and return their result."""


@final
class Async:
    """Verbs return an awaitable of their result."""


class _Unset:
    """The default of a parameter that was left out, where None has a meaning."""

    def __repr__(self) -> str:
        return "unchanged"


UNCHANGED: Any = _Unset()


class Operations(Generic[M]):
    """Base of every class whose methods are operations."""

    __slots__ = ()


class Method(Generic[P, R]):
    """How a type checker sees a verb. At run time it is the plain function."""

    @overload
    def __get__(self, noun: None, owner: type) -> Callable[Concatenate[Any, P], R]: ...
    @overload
    def __get__(self, noun: Operations[Sync], owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, noun: Operations[Async], owner: type) -> Callable[P, Awaitable[R]]: ...
    def __get__(self, noun: Any, owner: type) -> Any:
        raise NotImplementedError


class Stream(Generic[P, T]):
    """How a type checker sees a verb that yields its result piece by piece."""

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
        role: the lowest that may ask.
        status: of a success.
        raw: the parameter that is the request's body as bytes, where that is not JSON.
        media: type of the raw body, or of a result that is bytes.
        twin: the same operation over all tenants, beside one endpoint with the tenant in its path.
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
    """What the decorator notes on a verb.

    Attributes:
        endpoints: none for a verb that only a local engine has.
        local: the reason for that.
        reads: it changes nothing, although its method is not GET.
        slow: it takes seconds, because it starts a sandbox of its own.
        tagged: it changes a thing that has an ETag, so If-Match is accepted.
        secret: request or result holds a secret, so nothing is kept for an idempotency key.
        max_page: most entries of one page.
        streams: the result comes piece by piece.
        command: its name on the command line; None for none that is made from it.
        arguments: what the command takes by position, where the rule (:mod:`lodger.engine.cli.operations`) is wrong.
        items: key of a list in the command's JSON; the noun's or the verb's name if None.
        confirm: the question that a person must say yes to.
        may_fail: a result that is None or False says that nothing was done: the command ends with 1.
    """

    endpoints: tuple[Endpoint, ...] = ()
    local: str | None = None
    reads: bool = False
    slow: bool = False
    tagged: bool = False
    secret: bool = False
    max_page: int = 1000
    streams: bool = False
    command: str | None = ""
    arguments: tuple[str, ...] | None = None
    items: str | None = None
    confirm: str | None = None
    may_fail: bool = False


def operation(
    method: str,
    path: str,
    role: Role,
    *,
    status: int = 200,
    everywhere: bool = False,
    raw: str | None = None,
    media: str = "application/json",
    **more: Any,
) -> Callable[[Callable[Concatenate[Any, P], R]], Method[P, R]]:
    """Declare a verb of a noun.

    Args:
        method, path, role, status, raw, media: see :class:`Endpoint`.
        everywhere: operators may also ask without the tenant in the path, for all tenants.
        more: see :class:`Declared`.
    """
    endpoint = Endpoint(method, path, role, status, raw, media)
    endpoints = [endpoint]
    if everywhere:
        of_all = path.removeprefix("/tenants/{tenant_id}")
        endpoints.append(replace(endpoint, path=of_all, role=Role.OPERATOR, twin=True))

    def declare(function: Callable[Concatenate[Any, P], R]) -> Method[P, R]:
        setattr(function, _NOTE, Declared(tuple(endpoints), **more))
        return cast("Method[P, R]", function)

    return declare


def also(method: str, path: str, role: Role, *, raw: str, media: str) -> Callable[[Method[P, R]], Method[P, R]]:
    """Declare a second endpoint of an operation, which takes one parameter as raw bytes; stands above the first."""

    def declare(verb: Method[P, R]) -> Method[P, R]:
        before: Declared = getattr(verb, _NOTE)
        endpoint = Endpoint(method, path, role, raw=raw, media=media)
        setattr(verb, _NOTE, replace(before, endpoints=(*before.endpoints, endpoint)))
        return verb

    return declare


def local(reason: str) -> Callable[[Callable[Concatenate[Any, P], R]], Method[P, R]]:
    """Declare a verb that cannot be asked of a server."""

    def declare(function: Callable[Concatenate[Any, P], R]) -> Method[P, R]:
        setattr(function, _NOTE, Declared(local=reason, command=None))
        return cast("Method[P, R]", function)

    return declare


def stream(reason: str) -> Callable[[Callable[Concatenate[Any, P], Generator[T]]], Stream[P, T]]:
    """Declare a verb that yields its result piece by piece; ``reason`` says where HTTP has it."""

    def declare(function: Callable[Concatenate[Any, P], Generator[T]]) -> Stream[P, T]:
        setattr(function, _NOTE, Declared(local=reason, command=None, streams=True))
        return cast("Stream[P, T]", function)

    return declare


def declared(function: object) -> Declared | None:
    """Return what is declared of a function; None for one that is no operation."""
    return getattr(function, _NOTE, None)
