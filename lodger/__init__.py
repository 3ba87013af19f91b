"""Lodger runs scheduled tenant scripts in a sandbox. The front door: everything else lies in the packages below it.

``Engine`` and ``Client`` are for synchronous code, ``AsyncEngine`` and ``AsyncClient`` for asyncio. Names load on first use (PEP 562),
so that importing one package loads no other and needs no optional dependency.
"""

import os

TYPE_CHECKING = False  # the same as typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from lodger.engine.client.aio import AsyncClient
    from lodger.engine.client.blocking import Client
    from lodger.engine.aio import Engine as AsyncEngine
    from lodger.engine.sync import Engine

    __version__: str

__all__ = ["AsyncClient", "AsyncEngine", "Client", "Engine", "__version__"]

_HOMES = {
    "AsyncClient": ("lodger.engine.client", "AsyncClient"),
    "AsyncEngine": ("lodger.engine", "Engine"),
    "Client": ("lodger.engine.client", "Client"),
    "Engine": ("lodger.engine.sync", "Engine"),
}

# In a checkout the packages lie beside this folder. The links in it are for type checkers, which do not run this line.
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib would cost a worker's start 10 ms
if os.path.exists(os.path.join(_ROOT, "hatch_build.py")):  # noqa: PTH110, PTH118 - as above
    __path__ = [_ROOT, *__path__]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("lodger")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
