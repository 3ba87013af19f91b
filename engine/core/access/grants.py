"""The table of grants; enforcement, documentation and the command line are made from it.

A grant is a word and its object: ``kv``, ``sets:write:orders``, ``fetch:api.example.com``. Tenant, script version and schedule
may each name grants; a run has those that all of them name.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from lodger.engine.core.access.origins import Origin, parse_origin, with_ascii_domain
from lodger.engine.core.errors import InputError


@dataclass(frozen=True, slots=True)
class GrantSpec:
    """One form of grant. ``default``: tenants hold it unless the operator or the platform says otherwise."""

    form: str
    default: bool
    help: str


GRANTS: tuple[GrantSpec, ...] = (
    GrantSpec("collections", True, "read, write and remove documents of every collection"),
    GrantSpec("collections:read", False, "read documents of every collection"),
    GrantSpec("collections:read:NAME", False, "read documents of one collection"),
    GrantSpec("collections:write:NAME", False, "read, write and remove documents of one collection"),
    GrantSpec("sets:read", True, "read all exposed sets"),
    GrantSpec("sets:read:NAME", False, "read one exposed set"),
    GrantSpec("sets:write", False, "read and write all exposed sets, in the columns that expose(write=…) allows"),
    GrantSpec("sets:write:NAME", False, "read and write one exposed set, in the columns that expose(write=…) allows"),
    GrantSpec("kv", True, "read and write keyed values"),
    GrantSpec("kv:read", False, "read keyed values"),
    GrantSpec("mail", True, "send mail to the tenant's own people (lodger grant people)"),
    GrantSpec("mail:ADDRESS", False, "send mail to that address; mail:*@example.com to a whole domain, mail:* to any address"),
    GrantSpec("events", True, "emit events to the tenant's webhooks"),
    GrantSpec("run", True, "request later runs of the run's own script"),
    GrantSpec("run:SCRIPT", False, "request later runs of that script; run:* of every script of the tenant"),
    GrantSpec("functions", False, "call all functions of the platform"),
    GrantSpec("functions:NAME", False, "call one function of the platform, such as functions:crm.score"),
    GrantSpec("fetch:HOST", False, "send https requests to that host; fetch:*.example.com to all its subdomains, "
              "fetch:* to any public host, fetch:http://host:8080 with another scheme or port; "
              "fetch:HOST,120s,32MiB with a longer time for an answer and a larger body"),
    GrantSpec("secret:NAME", False, "put that secret into requests to the secret's hosts, without reading its value"),
    GrantSpec("secret:NAME:plain", False, "also read that secret's value"),
)  # fmt: skip

#: What tenants hold by default, as the setting ``grants`` is written.
DEFAULT = " ".join(spec.form for spec in GRANTS if spec.default)
MAX = 500

_NAME = r"[A-Za-z][A-Za-z0-9_]{0,62}"
_FUNCTION = r"[a-z][A-Za-z0-9_]{0,29}"
#: Grants in their one spelling, but for those of kind fetch.
_SPELT = re.compile(
    rf"kv(:read)?|events|collections(:read|:(read|write):{_NAME})?|sets:(read|write)(:{_NAME})?"
    r"|mail(:(\*|(\*|[^\s@*,;:<>\"()\[\]\\]{1,64})@[a-z0-9-]+(\.[a-z0-9-]+)*))?"
    rf"|run(:(\*|[^\s/\\:*][^\s/\\*]{{0,199}}))?|functions(:{_FUNCTION}\.{_FUNCTION})?|secret:{_NAME}(:plain)?"
)
#: Other spellings.
_SAME = {"sets": "sets:write", "collections:write": "collections", "kv:write": "kv"}
_FETCH = re.compile(r"([^,]+)(?:,([1-9][0-9]{0,4})s)?(?:,([1-9][0-9]{0,4})MiB)?", re.ASCII | re.IGNORECASE)
MIB = 1024 * 1024


class FetchLimits(NamedTuple):
    """Limits of a request: seconds until its answer is complete, and decoded bytes of the answer's body."""

    total_s: float
    body_bytes: int


#: What a grant allows that names no limits of its own.
FETCH_DEFAULT = FetchLimits(30, 8 * MIB)


@dataclass(frozen=True, slots=True)
class Grants:
    """The grants of a run: those that every layer (tenant, script, schedule) names, in their one spelling."""

    layers: tuple[frozenset[str], ...]

    def narrowed(self, wished: "Grants | None") -> "Grants":
        """Return these grants with those of ``wished`` as a further layer, which must hold them too; unchanged for None."""
        return self if wished is None else Grants(self.layers + wished.layers)

    def _all(self, *any_of: str) -> bool:
        """Whether every layer holds at least one of these grants."""
        return not any(layer.isdisjoint(any_of) for layer in self.layers)

    def of_rows(self, name: str, *, exposed: bool, write: bool) -> bool:
        """Whether a dataset may be read, or also written; ``exposed``: it is a table of the platform, not a collection."""
        kind, all_rows = ("sets", "sets:write") if exposed else ("collections", "collections")
        readable = () if write else (f"{kind}:read", f"{kind}:read:{name}")
        return self._all(all_rows, f"{kind}:write:{name}", *readable)

    def of_kv(self, *, write: bool) -> bool:
        """Whether keyed values may be read, or also written."""
        return self._all("kv") if write else self._all("kv", "kv:read")

    @property
    def of_events(self) -> bool:
        """Whether events may be emitted."""
        return self._all("events")

    def of_run(self, script: str, *, own: bool) -> bool:
        """Whether later runs of a script may be requested; ``own``: it is the run's own script."""
        return self._all("run:*", f"run:{script}", *(("run",) if own else ()))

    def of_mail(self, address: str, *, own: bool) -> bool:
        """Whether mail may go to an address; ``own``: it is one of the tenant's own people."""
        wanted = address.lower()
        domain = wanted.rpartition("@")[2]
        return self._all("mail:*", f"mail:{wanted}", f"mail:*@{domain}", *(("mail",) if own else ()))

    def of_function(self, name: str) -> bool:
        """Whether a function of the platform may be called."""
        return self._all("functions", f"functions:{name}")

    def of_fetch(self, origin: Origin) -> bool:
        """Whether a request may go to this origin."""
        return self.fetch_limits(origin) is not None

    def fetch_limits(self, origin: Origin) -> FetchLimits | None:
        """Return the limits of a request there: the widest of each layer, the narrowest over all layers; None without a grant.

        A grant of the first layer, the tenant's, that names no limit has the default one; elsewhere it narrows nothing.
        """
        if not self.layers:  # everything is granted
            return FETCH_DEFAULT
        total_s, body_bytes = [], []
        for at, layer in enumerate(self.layers):
            covering = [
                (seconds, size)
                for host, seconds, size in (_split_fetch(grant) for grant in layer if _kind_of(grant) == "fetch")
                if parse_origin(host).covers(origin)
            ]
            if not covering:
                return None
            default = FETCH_DEFAULT if at == 0 else FetchLimits(float("inf"), 1 << 62)
            total_s.append(max(seconds or default.total_s for seconds, _ in covering))
            body_bytes.append(max(size or default.body_bytes for _, size in covering))
        return FetchLimits(min(total_s), min(body_bytes))

    def of_secret(self, name: str, *, plain: bool = False) -> bool:
        """Whether a secret may be used, or its value read."""
        return self._all(f"secret:{name}:plain", *(() if plain else (f"secret:{name}",)))

    def any_of(self, kind: str) -> bool:
        """Whether every layer holds a grant of a kind, such as ``fetch`` or ``secret``."""
        return all(any(_kind_of(grant) == kind for grant in layer) for layer in self.layers)

    def shown(self) -> tuple[str, ...]:
        """Return the grants of the first layer (the tenant's) as they are written, in the table's order."""
        return _shown(self.layers[0])


def parse(texts: Iterable[str]) -> Grants:
    """Read grants as they are written.

    Raises:
        InputError: grant_unknown, grants_too_many.
    """
    found = frozenset(_parse(text) for text in texts)
    if len(found) > MAX:
        raise InputError("grants_too_many", count=len(found), maximum=MAX)
    return Grants((found,))


def meaning(text: str) -> str:
    """Return the sentence that explains what a grant allows."""
    return next(spec.help for spec in reversed(GRANTS) if _pattern_of(spec.form).fullmatch(text))


@cache
def _pattern_of(form: str) -> re.Pattern[str]:
    """Return the pattern of the grants of a form, whose words in capitals stand for names."""
    return re.compile(re.sub(r"[A-Z]+", ".+", form))


@lru_cache(maxsize=1024)
def _shown(layer: frozenset[str]) -> tuple[str, ...]:
    """Return the grants of a layer, in the order of the table."""
    kinds = [_kind_of(spec.form) for spec in GRANTS]
    return tuple(sorted(layer, key=lambda grant: (kinds.index(_kind_of(grant)), grant)))


def _kind_of(grant: str) -> str:
    """Return the first word of a grant."""
    return grant.partition(":")[0]


def _parse(text: object) -> str:
    """Return the one spelling of a grant; raises InputError (grant_unknown, host_invalid)."""
    if isinstance(text, str):
        kind, _, rest = text.partition(":")
        if kind == "fetch" and (found := _FETCH.fullmatch(rest)):
            limits = (f",{int(found[2])}s" if found[2] else "") + (f",{int(found[3])}MiB" if found[3] else "")
            return f"fetch:{parse_origin(found[1])}{limits}"
        spelt = f"mail:{_ascii(rest.lower())}" if kind == "mail" and rest else _SAME.get(text, text)
        if _SPELT.fullmatch(spelt):
            return spelt
    raise InputError("grant_unknown", text=text, grants=(spec.form for spec in GRANTS))


def same_host(one: str, two: str) -> bool:
    """Whether two grants as written are for ``fetch`` to the same hosts, whatever their limits."""
    return one.startswith("fetch:") and one.partition(",")[0] == two.partition(",")[0]


def _ascii(address: str) -> str:
    """Return a mail address with its domain in ASCII; unchanged if that is impossible."""
    try:
        return with_ascii_domain(address)
    except ValueError:
        return address


@lru_cache(maxsize=4096)
def _split_fetch(grant: str) -> tuple[str, int | None, int | None]:
    """Split a fetch grant into its origin, its time limit in seconds and its body limit in bytes; None for no limit."""
    found = _FETCH.fullmatch(grant.removeprefix("fetch:"))
    assert found is not None
    return found[1], int(found[2]) if found[2] else None, int(found[3]) * MIB if found[3] else None
