"""Limits of the API: requests a minute by token, tenant and address, and requests carried out at once.

The rates are counted in this process's memory: :mod:`lodger.engine.core.token_buckets`.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from lodger.engine.core.settings import Settings
from lodger.engine.core.token_buckets import TokenBuckets
from lodger.engine.server.problems import Refused

T = TypeVar("T")
#: Requests of one tenant or token that may wait for a thread; more are refused with 429.
MAX_WAITING = 128


class RateLimit:
    """At most ``per_minute`` requests of a key at once, refilled evenly over a minute."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._buckets = TokenBuckets(per_minute / 60, per_minute, time.monotonic)

    def hit(self, key: str) -> float:
        """Count a request of a key; return 0.0 if the limit allows it, else the seconds until it allows the next one, at least 1."""
        wait_s = self._buckets.turn(key, 0.0)
        return max(1.0, wait_s) if wait_s else 0.0

    def require(self, key: str, subject: str) -> dict[str, str]:
        """Count a request, and return the headers with the remaining number.

        Args:
            subject: whose requests are limited, for the message.

        Raises:
            Refused: too_many_requests.
        """
        wait_s = self.hit(key)
        left = self._buckets.left(key)
        headers = {
            "RateLimit-Policy": f"{self.per_minute};w=60", "RateLimit-Limit": str(self.per_minute), "RateLimit-Remaining": str(left),
            "RateLimit-Reset": str(math.ceil((self.per_minute - left) * 60 / self.per_minute)),
        }  # fmt: skip
        if wait_s:
            headers |= _retry_after(wait_s)
            raise Refused(429, "too_many_requests", subject=subject, per_minute=self.per_minute, headers=headers)
        return headers


class RateLimits:
    """Requests a minute by token and by tenant, and failed authentications a minute by address."""

    def __init__(self, settings: Settings) -> None:
        self._tokens = RateLimit(settings.api_requests_per_minute)
        self._tenants = RateLimit(settings.api_tenant_requests_per_minute)
        self._failures = RateLimit(settings.api_failures_per_minute)

    def request(self, token_id: str, tenant_id: str | None) -> dict[str, str]:
        """Count a request, and return the headers of the limit of which least is left.

        Raises:
            Refused: too_many_requests.
        """
        found = [self._tokens.require(token_id, "a token")]
        if tenant_id is not None:
            found.append(self._tenants.require(tenant_id, "all tokens of a tenant together"))
        return min(found, key=lambda each: int(each["RateLimit-Remaining"]))

    def failure(self, address: str) -> None:
        """Count a failed authentication.

        Raises:
            Refused: too_many_failures.
        """
        wait_s = self._failures.hit(address)
        if wait_s:
            raise Refused(429, "too_many_failures", headers=_retry_after(wait_s))


def _retry_after(wait_s: float) -> dict[str, str]:
    """Return the Retry-After header for a wait in seconds, at least 1."""
    return {"Retry-After": str(max(1, round(wait_s)))}


@dataclass(slots=True)
class _Share:
    semaphore: asyncio.Semaphore
    users: int = 0


class Threads:
    """Blocking work in threads: ``total`` at once, ``share`` of one key.

    First in, first out between the keys; since no key holds or waits for more than its share of the total, a request waits for at most
    ``share`` requests of each other key, however many one of them sent. Belongs to the event loop that uses it first.
    """

    def __init__(self, total: int, share: int, *, max_waiting: int | None = MAX_WAITING) -> None:
        self._total = total
        self._share = share
        self._max_waiting = max_waiting
        self._slots = asyncio.Semaphore(total)
        self._shares: dict[str, _Share] = {}
        self._threads: CapacityLimiter | None = None

    async def run(self, key: str, work: Callable[[], T]) -> T:
        """Run blocking work in a thread, in the present context.

        Raises:
            Refused: too_many_at_once.
        """
        async with self.slot(key):
            return await self.run_held(work)

    async def run_held(self, work: Callable[[], T]) -> T:
        """Run blocking work in a thread; the caller is within :meth:`slot`."""
        self._threads = self._threads or CapacityLimiter(self._total)
        return await to_thread.run_sync(work, limiter=self._threads)

    @asynccontextmanager
    async def slot(self, key: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the block.

        Raises:
            Refused: too_many_at_once.
        """
        share = self._shares.setdefault(key, _Share(asyncio.Semaphore(self._share)))
        if self._max_waiting is not None and share.users >= self._share + self._max_waiting:
            raise Refused(
                429, "too_many_at_once", share=self._share, waiting=self._max_waiting, headers={"Retry-After": "1"}
            )
        share.users += 1
        try:
            async with share.semaphore, self._slots:
                yield
        finally:
            share.users -= 1
            if not share.users:
                del self._shares[key]
