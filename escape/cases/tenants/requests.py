"""Classes 97 to 105: requests to this host, its network or its metadata service.

The canary listens on the loopback address and must receive no connection.
"""

from lodger.engine.core.execution import Answer
from lodger.engine.egress.request import Request
from lodger.escape.case import Case
from lodger.escape.cases.tenants.data import asking
from lodger.escape.cases.tenants.world import Everything, TenantHost, world
from lodger.escape.evidence import Escaped, Trial, Unseen
from lodger.sandbox.job import CallHandler
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome

#: class, name, mechanism, host as written; some parser reads each as the loopback address
HOSTS = (
    (97, "loopback", "the loopback address", "127.0.0.1"),
    (97, "any", "the address of every interface", "0.0.0.0"),  # noqa: S104 - asked for, not bound
    (97, "name", "localhost", "localhost"),
    (97, "name-capitals", "localhost in capitals", "LOCALHOST"),
    (98, "short", "the loopback address in two parts", "127.1"),
    (98, "decimal", "the loopback address as one number", "2130706433"),
    (98, "octal", "the loopback address in eights", "0177.0.0.1"),
    (98, "hexadecimal", "the loopback address in sixteens", "0x7f.0.0.1"),
    (98, "hexadecimal-whole", "the loopback address as one number in sixteens", "0x7f000001"),
    (98, "zero", "nothing but a nought", "0"),
    (98, "mixed", "the loopback address in mixed numbers", "0x7f.1"),
    (99, "mapped", "the loopback address inside one of IPv6", "[::ffff:127.0.0.1]"),
    (99, "mapped-hexadecimal", "the same in sixteens", "[::ffff:7f00:1]"),
    (104, "user", "an address behind a user's name", "example.com@127.0.0.1"),
    (104, "password", "an address behind a user's name and password", "example.com:443@127.0.0.1"),
)
#: Cases stopped by parsing the address, not by the table of closed addresses.
_READING = {"user", "password"}


async def by_the_rules(request: Request) -> Answer:
    """Make a request with the engine's rules, with no address of this host open."""
    import ssl
    import time

    from lodger.engine.core.token_buckets import TokenBuckets
    from lodger.engine.egress.address import Address, AddressPolicy
    from lodger.engine.egress.client import Rules, send

    class Hosts:
        async def addresses(self, host: str) -> list[Address]:
            """Return the address that a host's name stands for, without a name server."""
            from ipaddress import ip_address

            return [ip_address("127.0.0.1" if host.lower().startswith("localhost") else host)]

    pace = TokenBuckets(1000.0, 1000, time.monotonic)
    rules = Rules(AddressPolicy(()), Hosts(), frozenset(range(1, 65_536)), ssl.create_default_context(), pace, pace)
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


CASES = [
    Case(
        f"F{number}-{name}",
        "one_reading" if name in _READING else "closed_addresses",
        mechanism,
        asking("http.fetch", f"{{ id: 1, method: 'GET', url: 'http://{host}:' + action.input + '/', headers: [] }}"),
        (Outcome.OK,),
        seen=_never_visited,
        story="A request is allowed by its address, which is parsed once.",
        limits={"wall_ms": 5000, "cpu_ms": 500},
        context='{"action":{"id":"escape","input":CANARY_PORT}}',
        host=requesting_host,
    )
    for number, name, mechanism, host in HOSTS
]
