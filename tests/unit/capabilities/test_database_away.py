"""A call that meets a database that is away is neither the script's mistake nor a bug of ours."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest
from sqlalchemy import Connection
from tests.unit.data.shop import NOW_US, Shop

from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.core.errors import Unavailable
from lodger.engine.node.executors.attempt import Attempt
from lodger.sandbox.job import CallHandlerGone

T = TypeVar("T")


async def away(_work: Callable[[Connection], T]) -> T:
    """Answer every question as a database that cannot be reached."""
    raise Unavailable("database_unreachable", place="ledger", reason="it was stopped")


def test_it_is_told_as_that(shop: Shop) -> None:
    claim = shop.attempt().claim
    attempt = Attempt(claim, away, shop.datasets, now_us=NOW_US, fetch_state=FetchState.of(claim))
    with pytest.raises(CallHandlerGone, match="database_unreachable"):
        asyncio.run(attempt.call("db.find", '{"set": "orders"}'))
