"""A database that stops answering."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection
from tests.unit.data.shop import Shop

T = TypeVar("T")


class Silent:
    """Answers the question that each attempt begins with, and no other."""

    def __init__(self, shop: Shop) -> None:
        self._shop, self._is_asked = shop, False

    async def __call__(self, work: Callable[[Connection], T]) -> T:
        if self._is_asked:
            await asyncio.get_running_loop().create_future()
        self._is_asked = True
        return await self._shop.read(work)
