"""Attempts that send requests to peers on the loopback; none of them depends on the database."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tests.egress.peer import Peer, opened, thread_of_peers
from tests.unit.data.shop import Shop

from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.core.access.grants import parse
from lodger.engine.core.access.origins import parse_origin
from lodger.engine.core.execution import Answer
from lodger.engine.egress.request import Request
from lodger.engine.egress.way_out import WayOut
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.tenants.secrets import OpenSecret

ACTION = "018f0000-0000-7000-8000-000000000001"
VALUE = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"


class RequestBench:
    """Attempts of a tenant with one secret, which may go to the first peer; ``settings`` replace those that open the peers' address."""

    def __init__(self, shop: Shop, *peers: Peer, **settings: str) -> None:
        self.shop, self.peers, self.peer = shop, peers, peers[0]
        self.way = WayOut(opened(*peers).model_copy(update=settings))
        self.requests: list[Request] = []
        self.value, self.hosts = VALUE, [self.peer.url("")]
        self.reach = [f"fetch:{peer.url('')}" for peer in peers]
        self.asked_for: list[set[str]] = []

    def attempt(
        self,
        *grants: str,
        tenant: str = "one",
        kept: dict[str, Answer] | None = None,
        budgets: Any = None,
        claim: Any = None,
        **state: Any,
    ) -> Attempt:
        """Return an attempt with these grants and those of ``reach``, at first to fetch from all peers."""

        async def known() -> dict[str, Answer]:
            return kept or {}

        granted = {"grants": parse([*self.reach, *grants])} | (claim or {})
        fetch_state = FetchState(tenant, ACTION, 0, self.send, known, **state)
        return self.shop.attempt(
            tenant, claim=granted, fetch_state=fetch_state, budgets=budgets or {}, read_secrets=self.opens
        )

    async def send(self, request: Request) -> Answer:
        self.requests.append(request)
        return await self.way.send(request)

    async def opens(self, names: Collection[str]) -> dict[str, OpenSecret]:
        """Return the secrets of these names, and note that they were asked for."""
        self.asked_for.append(set(names))
        known = {"KEY": OpenSecret("KEY", tuple(map(parse_origin, self.hosts)), self.value)}
        return {name: known[name] for name in names if name in known}


B = TypeVar("B", bound=RequestBench)


@contextmanager
def opened_bench(*peers: Peer, of: type[B] = RequestBench, **settings: str) -> Iterator[B]:
    """Serve the peers for the block, with a bench beside them."""
    shop = Shop()
    with thread_of_peers(*peers):
        bench = of(shop, *peers, **settings)
        yield bench
        bench.way.stop()
    shop.close()
