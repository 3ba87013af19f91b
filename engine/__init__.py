"""Decides what is due, remembers what happened, answers the API. It never executes a customer's byte.

Names load on first use (PEP 562), so that reading one pure module does not import a database.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lodger.engine.aio import Engine

__all__ = ["Engine"]


def __getattr__(name: str) -> object:
    if name != "Engine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lodger.engine import aio

    return aio.Engine
