"""Proxies of nouns, which forward their verbs: to a thread for the asynchronous engine, to a server for the clients."""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Protocol

from lodger.engine.service.operations.declaration import M
from lodger.engine.service.operations.route import Operation
from lodger.engine.service.operations.table import Nouns, table_of


class Carry(Protocol):
    """Executes one operation with the caller's arguments; returns the result or an awaitable of it."""

    def __call__(self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Execute an operation with these arguments."""


@cache
def signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return a verb's signature for callers, without ``self``."""
    found = inspect.signature(function)
    return found.replace(parameters=list(found.parameters.values())[1:])


class Proxy:
    """One noun with the verbs of the table, each with the signature and the documentation of its function."""

    def __init__(self, noun: str, operations: dict[str, Operation], call: Carry, *, awaited: bool) -> None:
        self._noun = noun
        self._operations = operations
        self._call = call
        self._awaited = awaited

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        operation = self._operations.get(f"{self._noun}.{verb}")
        if operation is None:
            raise AttributeError(f"{self._noun} has no operation {verb!r}")

        def call_blocking(*args: Any, **kwargs: Any) -> Any:
            """Carry out the operation by the proxy."""
            return self._call(operation, args, kwargs)

        async def call_awaited(*args: Any, **kwargs: Any) -> Any:
            """Carry out the operation by the proxy, without blocking the event loop."""
            return await self._call(operation, args, kwargs)

        call = wraps(operation.function)(
            call_awaited if self._awaited and not operation.declared.streams else call_blocking
        )
        call.__signature__ = signature(operation.function)  # type: ignore[attr-defined]  # what inspect reads
        return call

    def __dir__(self) -> list[str]:
        return [each.verb for each in self._operations.values() if each.noun == self._noun]


def bind_operations(engine: Nouns[M], call: Carry, *, awaited: bool = False) -> None:
    """Set the nouns of an engine or a client; ``awaited``: their verbs are coroutine functions."""
    table = table_of(type(engine))
    for noun in table.nouns:
        setattr(engine, noun, Proxy(noun, table.operations, call, awaited=awaited))
