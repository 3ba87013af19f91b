"""The main line's nouns, and the operations and HTTP routes that an engine's nouns declare."""

import inspect
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Concatenate, Generic, cast, get_origin, get_type_hints, overload

from lodger.engine.service.nouns.actions import Actions
from lodger.engine.service.nouns.audit import Audit
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.nouns.collections import Collections
from lodger.engine.service.nouns.grants import Grants
from lodger.engine.service.nouns.platform import Metrics, Nodes
from lodger.engine.service.nouns.schedules import Schedules
from lodger.engine.service.nouns.scripts import Scripts
from lodger.engine.service.nouns.secrets import Secrets
from lodger.engine.service.nouns.tenants import Tenants
from lodger.engine.service.nouns.tokens import Tokens
from lodger.engine.service.operations.declaration import Async, M, P, R, Sync, declared
from lodger.engine.service.operations.route import Operation, Route


class Shortcut(Generic[P, R]):
    """A verb of an engine or a client itself, such as ``engine.run_at`` for ``engine.actions.run_at``."""

    def __init__(self, noun: str, verb: Callable[Concatenate[Any, P], R]) -> None:
        self._noun = noun
        self._verb = verb
        self.__doc__ = verb.__doc__

    @overload
    def __get__(self, engine: None, owner: type) -> Callable[Concatenate[Any, P], R]: ...
    @overload
    def __get__(self, engine: "Nouns[Sync]", owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, engine: "Nouns[Async]", owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, engine: Any, owner: type) -> Any:
        return self._verb if engine is None else getattr(getattr(engine, self._noun), self._verb.__name__)


class Nouns(Generic[M]):
    """The main line's nouns of every engine and client; ``M`` says whether their verbs are awaited."""

    tenants: Tenants[M]
    grants: Grants[M]
    collections: Collections[M]
    secrets: Secrets[M]
    scripts: Scripts[M]
    schedules: Schedules[M]
    actions: Actions[M]
    tokens: Tokens[M]
    audit: Audit[M]
    nodes: Nodes[M]
    metrics: Metrics[M]

    run_at = Shortcut("actions", Actions.run_at)
    run_in = Shortcut("actions", Actions.run_in)


@dataclass(frozen=True, eq=False)
class OperationTable:
    """The operations of an engine's nouns.

    Attributes:
        nouns: classes by the engine's attribute.
        operations: by full name.
        routes: HTTP routes, in the order of the operations.
    """

    nouns: dict[str, type[Noun[Any]]]
    operations: dict[str, Operation]
    routes: tuple[Route, ...]

    @property
    def local_only(self) -> dict[str, str]:
        """Verbs without a route, each with its reason."""
        return {each.name: each.declared.local for each in self.operations.values() if each.declared.local is not None}

    def routes_of(self, operation: str) -> tuple[Route, ...]:
        """Return the routes of an operation, those with the most parameters in the path first."""
        found = [route for route in self.routes if route.name == operation]
        return tuple(sorted(found, key=lambda route: -route.path.count("{")))


def table_of(engine: type[Nouns[Any]]) -> OperationTable:
    """Return the operations of an engine's or a client's class, read from the annotations of its nouns."""
    return _table(cast("Any", engine))


@cache
def _table(engine: Any) -> OperationTable:
    """Return the operations and routes of an engine class."""
    kinds = {name: get_origin(hint) for name, hint in get_type_hints(engine).items()}
    nouns = {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Noun)}
    operations = {each.name: each for noun, kind in nouns.items() for each in _collected(noun, kind)}
    routes = [
        Route(**asdict(endpoint), noun=each.noun, verb=each.verb, function=each.function, declared=each.declared)
        for each in operations.values()
        for endpoint in each.declared.endpoints
    ]
    return OperationTable(nouns, operations, tuple(routes))


def _collected(noun: str, kind: type) -> Iterator[Operation]:
    """Yield the operations that the class of a noun declares."""
    for verb in {name: None for base in reversed(kind.__mro__) for name in vars(base)}:
        function = inspect.getattr_static(kind, verb)
        found = declared(function)
        if found is not None:
            yield Operation(noun=noun, verb=verb, function=function, declared=found)
