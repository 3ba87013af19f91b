"""The session: one attempt as its host calls see it, such as its tenant, journal, budgets and database access."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection

from lodger.engine.capabilities.attempt_budgets import Counters, Share
from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.core.execution import Claim
from lodger.engine.core.ids import Identities
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.dataset import Dataset, TableDataset, database_of
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.guard import isolated_query
from lodger.engine.data.sets.reads import STATEMENT_S
from lodger.engine.data.sets.scope import Scope
from lodger.engine.effects.journal import Journal
from lodger.engine.store.tenants.secrets import OpenSecret
from lodger.engine.vault.redaction import Redactor
from lodger.sandbox.nodejs.intl_process import IntlProcesses

T = TypeVar("T")
P = ParamSpec("P")
#: Number of keys that a run takes at once after its first insert.
KEYS_AT_ONCE = 20


class QueryRunner(Protocol):
    """Runs a query on a read-only connection; no transaction outlives the query."""

    async def __call__(self, work: Callable[[Connection], T]) -> T:
        """Return the result of ``work``."""


#: Returns those of the addresses that belong to a tenant's own people.
AddressLookup = Callable[[str, Collection[str]], Coroutine[Any, Any, Collection[str]]]
#: Returns those of the secrets of the attempt's tenant that exist, with their values.
SecretLookup = Callable[[Collection[str]], Coroutine[Any, Any, dict[str, OpenSecret]]]
#: Returns so many keys of a dataset, or None when its database makes them only when a row is written.
Numbers = Callable[[TableDataset, int], Awaitable[list[int] | None]]
#: Refuses a script, requested to run later, that the tenant does not have, or params that it does not declare; the commit checks again.
ScriptCheck = Callable[[str, Any], Coroutine[Any, Any, None]]


async def unchecked(_name: str, _params: Any) -> None:
    """Check of a later run's script for trials: accept any script and params; the commit checks them."""


async def no_addresses(_tenant_id: str, _addresses: Collection[str]) -> Collection[str]:
    """Return none of the addresses: no tenant has people of its own."""
    return ()


async def no_secrets(_names: Collection[str]) -> dict[str, OpenSecret]:
    """Return no secrets: for attempts of a tenant that has none."""
    return {}


class DatabaseWaits:
    """How long an attempt has waited for answers of databases that have not come."""

    def __init__(self) -> None:
        self._begun: dict[object, float] = {}
        self._given_up_s = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of the block as a wait for a database."""
        key, loop = object(), asyncio.get_running_loop()
        self._begun[key] = loop.time()
        try:
            yield
        except asyncio.CancelledError:  # the attempt has ended before the answer
            self._given_up_s = max(self._given_up_s, loop.time() - self._begun[key])
            raise
        finally:
            del self._begun[key]

    def timed(self, ask: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return the query function with its waits counted."""
        return partial(self._timed, ask)

    async def _timed(self, ask: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a query function, and count its time as a wait for the database."""
        with self.waiting():
            return await ask(*args, **kwargs)

    def are_too_long(self, wall_s: float) -> bool:
        """Whether a question has waited for as long as a statement may take, or for half of the wall."""
        now_s = asyncio.get_running_loop().time() if self._begun else 0.0
        waited_s = max([self._given_up_s, *(now_s - begun_s for begun_s in self._begun.values())])
        return is_too_long(waited_s, wall_s)


def is_too_long(waited_s: float, wall_s: float) -> bool:
    """Whether the engine is to blame for a wall that ended after so long a wait for a database."""
    return waited_s >= min(STATEMENT_S, wall_s / 2)


@dataclass(eq=False)
class Session:
    """One attempt as its host calls see it.

    Attributes:
        claim: the tenant is taken from here and from nowhere else.
        query: runs a query on a read-only connection of the ledger's database.
        datasets: the datasets that ``db.NAME`` refers to.
        now_us: time that the script sees as now.
        fetch_state: state of its HTTP requests.
        people: finds the addresses of the tenant's own people.
        read_secrets: reads secrets; ``redactor`` knows the values that the script has read.
        check_script: checks scripts that are to run later.
        numbers: reserves keys that a database generates; None, and in a trial, tokens stand for them.
        intl: answers calls of Intl; None: they are refused.
        new_id: generates keys.
        budgets: the attempt's budgets; of a call that may use much of the tenant's day, its share.
        spent: used amounts without a budget of their own, such as iterations of key derivations; the CPU time that the
            engine computed for the attempt is in ``computed_us``.
        indexed_paths: of collections that it has asked about, see :meth:`lodger.engine.data.reading.reader.Reader.is_current`.
    """

    claim: Claim
    query: QueryRunner
    datasets: Datasets
    _: KW_ONLY
    now_us: int
    fetch_state: FetchState
    people: AddressLookup = no_addresses
    read_secrets: SecretLookup = no_secrets
    check_script: ScriptCheck = unchecked
    numbers: Numbers | None = None
    intl: IntlProcesses | None = None
    new_id: Callable[[], str] = field(init=False)
    scope: Scope = field(init=False)
    journal: Journal = field(init=False)
    budgets: Counters | Share = field(init=False)
    redactor: Redactor = field(init=False, default_factory=Redactor)
    waits: DatabaseWaits = field(init=False, default_factory=DatabaseWaits)
    spent: dict[str, int] = field(init=False, default_factory=dict)
    indexed_paths: dict[str, list[str]] = field(init=False, default_factory=dict)
    spare_keys: dict[TableDataset, list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        claim, timed, now_us = self.claim, self.waits.timed, self.now_us
        self.datasets = self.datasets.pinned()
        self.journal = Journal(claim.tenant_id, claim.action_id, claim.step, self.datasets, self.consumer)
        self.scope = Scope(claim.tenant_id)
        self.new_id = Identities(lambda: now_us).new
        self.people, self.read_secrets = timed(self.people), timed(self.read_secrets)
        self.check_script = timed(self.check_script)
        self.fetch_state.earlier = timed(self.fetch_state.earlier)
        self.numbers = None if claim.trial or self.numbers is None else timed(self.numbers)

    @property
    def consumer(self) -> str:
        """Reader of feeds: the schedule of the attempt, or its script if it has none."""
        return self.claim.schedule_id or str(uuid.uuid5(uuid.NAMESPACE_OID, self.claim.script_name))

    async def read(self, work: Callable[[Connection], T], rows: Dataset | None = None) -> T:
        """Run a query on the database of a dataset, or on Lodger's own tables, restricted to this tenant."""
        asked = isolated_query(work, self.claim.tenant_id, self.datasets, rows)
        database = None if rows is None else database_of(rows)
        with self.waits.waiting():
            return await (self.query(asked) if database is None else database.ask(asked))

    @property
    def computed_us(self) -> int:
        """CPU time that the engine and its processes computed for the attempt, microseconds; counted as the attempt's own."""
        return self.spent.get("computed_us", 0)

    def charge_cpu(self, us: int) -> None:
        """Count CPU time that the engine computed for the attempt."""
        self.spent["computed_us"] = self.computed_us + us

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Charge the CPU time of the block, which computes in the present thread for the attempt.

        Raises:
            CallRefused: ``budget_exceeded``; see :meth:`require_cpu`.
        """
        self.require_cpu()
        begun_ns = time.thread_time_ns()
        try:
            yield
        finally:
            self.charge_cpu((time.thread_time_ns() - begun_ns) // 1000)

    def require_cpu(self) -> None:
        """Refuse to compute more for the attempt than its CPU time.

        Raises:
            CallRefused: ``budget_exceeded``.
        """
        if self.computed_us >= self.claim.limits.cpu_ms * 1000:
            what = f"what the engine computes for a run takes at most the run's CPU time, {self.claim.limits.cpu_ms} ms"
            raise CallRefused("budget_exceeded", what)

    async def number(self, rows: TableDataset, of: int = 1) -> int | None:
        """Return a key generated by the dataset's database; None if the key is known only after the commit.

        Args:
            of: number of keys that will be taken.
        """
        if self.numbers is None:
            return None
        left = self.spare_keys.get(rows)
        if not left:
            # One key for a single insert, several for repeated ones: each query costs a round trip, and unused keys are
            # lost.
            found = await self.numbers(rows, max(of, 1 if left is None else KEYS_AT_ONCE))
            if found is None:
                return None
            left = self.spare_keys[rows] = found[::-1]
        return left.pop()


Handler = Callable[[Session, dict[str, Any]], Awaitable[Any]]
