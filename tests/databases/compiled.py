"""Statements that one test's ledger has compiled are compiled for the next one's too, as they are in a process that lives on.

SQLAlchemy keeps them with each engine, and each test opens one of its own: that was a quarter of a small test's CPU time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine

from lodger.engine.store.drivers import StatementCache
from lodger.engine.store.drivers.postgresql import PostgresDriver
from lodger.engine.store.drivers.sqlite import SqliteDriver

#: More than Lodger has statements; what tests make up goes again.
MAX_STATEMENTS = 2000


class _Compiled(StatementCache):
    """A cache of compiled statements that all dialects of one kind share: Lodger sets them up alike, and the key begins with the kind."""

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: tuple[Any, ...], value: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), value)


@contextmanager
def kept_statements() -> Iterator[None]:
    """For the block, ledgers share what they compile."""
    shared = _Compiled(MAX_STATEMENTS)
    opening = {kind: kind.open for kind in (SqliteDriver, PostgresDriver)}

    def sharing(kind: type[Any]) -> Any:
        def opened(driver: Any, *given: Any, **more: Any) -> Engine:
            engine: Engine = opening[kind](driver, *given, **more)
            return engine.execution_options(compiled_cache=shared)

        return opened

    for kind in opening:
        kind.open = sharing(kind)  # type: ignore[method-assign]  # that is the idea
    try:
        yield
    finally:
        for kind, before in opening.items():
            kind.open = before  # type: ignore[method-assign]  # as they were
