"""Values of the present task or thread for the time of a block."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def holding(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a context variable to this value during the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
