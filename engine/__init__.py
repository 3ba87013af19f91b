"""Decides what is due, remembers what happened, answers the API. It never executes a customer's byte.

Names load on first use (PEP 562), so that reading one pure module does not import a database.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lodger.engine.aio import Engine

__all__ = ["Engine"]

_HOMES = {"Engine": "aio"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"lodger.engine.{_HOMES[name]}"), name)
