"""Classes 97 to 105: requests to this host, its network or its metadata service.

The canary listens on the loopback address and must receive no connection.
"""

from lodger.engine.core.execution import Answer
from lodger.engine.egress.request import Request
from lodger.escape.attack_files import cases_of
from lodger.escape.cases.tenants.world import Everything, TenantHost, world
from lodger.escape.evidence import Escaped, Trial, Unseen
from lodger.sandbox.job import CallHandler
from lodger.sandbox.limits import Limits


async def by_the_rules(request: Request) -> Answer:
    """Make a request with the engine's rules, with no address of this host open."""
    import ssl
    import time

    from lodger.engine.core.token_buckets import TokenBuckets
    from lodger.engine.egress.address import Address, AddressPolicy
    from lodger.engine.egress.client import Rules, send

    async def address_of(host: str) -> list[Address]:
        """Return the address that a host's name stands for, without a name server."""
        from ipaddress import ip_address

        return [ip_address("127.0.0.1" if host.lower().startswith("localhost") else host)]

    pace = TokenBuckets(1000.0, 1000, time.monotonic)
    rules = Rules(AddressPolicy(()), address_of, frozenset(range(1, 65_536)), ssl.create_default_context(), pace, pace)
    return await send(rules, request)


def requesting_host(limits: Limits) -> CallHandler:
    """Return the real host of an attempt that may request any host name, so that the address decides. Raises Unseen."""
    try:
        import lodger.engine.egress.client  # noqa: F401 - a test whether it is installed
    except ImportError as missing:
        raise Unseen(f"the extra for requests is not installed: {missing.name}") from None
    return TenantHost(limits, granted=Everything(()), datasets=world().open, send=by_the_rules)


def _never_visited(trial: Trial) -> str:
    """Check that the canary on the loopback address got no connection."""
    if "visited" in trial.facts:
        raise Escaped(trial.facts["visited"])
    return f"the canary was not visited; told {(trial.report.result or '')[:100]}"


CASES = [*cases_of(__file__, checks={"never_visited": _never_visited}, common={"host": requesting_host})]
