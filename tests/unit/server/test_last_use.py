"""When tokens were last used is written beside the answers: all that waits in one transaction, the same thing once."""

import asyncio
from pathlib import Path
from typing import Any, Self

import pytest

from lodger.engine.core.errors import Unavailable
from lodger.engine.server.auth import LastUse
from lodger.engine.sync import Engine


async def test_what_waits_is_written_together_and_the_same_once(tmp_path: Path) -> None:
    with Engine.open(f"sqlite:///{tmp_path / 'l.db'}") as engine:
        before = engine.context.database.written
        wrote: list[tuple[str, int]] = []

        last_use = LastUse(engine.at)

        def of(name: str) -> Any:
            return lambda _connection: wrote.append((name, engine.context.database.written))

        for _ in range(50):
            for name in ("a", "b", "c"):
                last_use.note(name, of(name))
        assert last_use.pending == 3
        await asyncio.gather(*(last_use.write() for _ in range(20)))
        assert last_use.pending == 0
        assert [name for name, _ in wrote] == ["a", "b", "c"]
        assert engine.context.database.written == before + 1


async def test_what_is_on_its_way_is_not_written_again() -> None:
    wrote: list[str] = []
    last_use = LastUse(StoreContext(wrote, begin=lambda: last_use.note("a", lambda _c: wrote.append("again"))).at)
    last_use.note("a", lambda _connection: wrote.append("a"))
    await last_use.write()
    await last_use.write()
    assert wrote == ["begun", "a"]


async def test_a_ledger_that_takes_nothing_is_told_of_and_fails_no_request(caplog: pytest.LogCaptureFixture) -> None:
    def full() -> None:
        raise Unavailable("disk_full", place="ledger", reason="the disk is full")

    last_use = LastUse(StoreContext([], begin=full).at)
    last_use.note("a", lambda _connection: None)
    await last_use.write()
    assert last_use.pending == 0
    assert "the disk is full" in caplog.text


class StoreContext:
    """A ledger with a hook of the test at the begin of transactions."""

    def __init__(self, wrote: list[str], begin: Any) -> None:
        self.context = self.database = self
        self._wrote = wrote
        self._begin = begin

    def at(self, _tenant_id: str | None) -> Any:
        return self

    def write(self) -> Any:
        return self

    def __enter__(self) -> Self:
        self._begin()
        self._wrote.append("begun")
        return self

    def __exit__(self, *_error: object) -> None:
        pass
