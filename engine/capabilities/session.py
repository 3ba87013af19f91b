"""The session: shared state of the capabilities of one attempt, such as its tenant, journal, budgets and database access."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.core.execution import Claim
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.dataset import Dataset, TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.numbers import Numbers
from lodger.engine.data.sets.scope import Scope
from lodger.engine.effects.journal import Journal
from lodger.engine.store.tenants.secrets import OpenSecret
from lodger.engine.vault.redaction import Redactor
from lodger.sandbox.nodejs.intl_process import IntlProcesses

T = TypeVar("T")


class QueryRunner(Protocol):
    """Runs a query on a read-only connection; no transaction outlives the query."""

    async def __call__(self, work: Callable[[Connection], T]) -> T:
        """Return the result of ``work``."""
        ...


class TenantQueryRunner(Protocol):
    """Runs a query on the database of a set, or on Lodger's own tables, restricted to this tenant."""

    async def __call__(self, work: Callable[[Connection], T], rows: Dataset | None = None) -> T:
        """Return the result of ``work``."""
        ...


class AttemptBudgets(Protocol):
    """The attempt's budgets."""

    def spend(self, name: str, amount: int = 1, *, happened: bool = False) -> None:
        """Charge a budget, or refuse; an amount that has already ``happened`` is charged in any case."""
        ...

    def left(self, name: str) -> int:
        """Return the remaining amount."""
        ...

    def rows(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return all budgets in the form for scripts."""
        ...


class AddressLookup(Protocol):
    """Finds the addresses of a tenant's own people."""

    async def __call__(self, tenant_id: str, addresses: Collection[str], /) -> Collection[str]:
        """Return those of the addresses that belong to the tenant's own people."""
        ...


class SecretLookup(Protocol):
    """Reads secrets of the attempt's tenant."""

    async def __call__(self, names: Collection[str], /) -> dict[str, OpenSecret]:
        """Return those of the secrets that exist, with their values."""
        ...


class ScriptCheck(Protocol):
    """Checks a later run when it is requested; the commit checks it again."""

    async def __call__(self, name: str, params: Any, /) -> None:
        """Refuse a script that the tenant does not have, or params that it does not declare."""
        ...


async def unchecked(_name: str, _params: Any) -> None:
    """Leave the check to the commit."""


@dataclass(frozen=True, slots=True)
class Session:
    """One attempt as its capabilities see it.

    Attributes:
        claim: what runs: its tenant, script, schedule, grants and limits.
        check_script: checks later runs of its script and of others.
        now_us: time of the attempt, fixed at its start.
        new_id: generates keys.
        own_addresses: finds the addresses of the tenant's own people.
        fetch_state: its HTTP requests.
        read_secrets: reads secrets; ``redactor`` knows the values that the script has read.
        consumer: reader of feeds: its schedule, or its script if it has none.
        numbers: takes keys from a database that generates them.
        spent: used amounts of what has no budget of its own, such as iterations of key derivations; the CPU time that the
            engine computed for the attempt is in ``computed_us``.
        indexed_paths: of collections that it has asked about, see :meth:`lodger.engine.data.reading.reader.Reader.is_current`.
        intl: answers calls of Intl; None: they are refused.
    """

    claim: Claim
    scope: Scope
    journal: Journal
    datasets: Datasets
    budgets: AttemptBudgets
    read: TenantQueryRunner
    now_us: int
    new_id: Callable[[], str]
    own_addresses: AddressLookup
    fetch_state: FetchState
    read_secrets: SecretLookup
    redactor: Redactor
    check_script: ScriptCheck = unchecked
    consumer: str = ""
    numbers: Numbers | None = None
    intl: IntlProcesses | None = None
    spent: dict[str, int] = field(default_factory=dict)
    indexed_paths: dict[str, list[str]] = field(default_factory=dict)
    spare_keys: dict[TableDataset, list[int]] = field(default_factory=dict)

    @property
    def computed_us(self) -> int:
        """CPU time that the engine and its processes computed for the attempt, microseconds; counted as the attempt's own."""
        return self.spent.get("computed_us", 0)

    def charge_cpu(self, us: int) -> None:
        """Add to :attr:`computed_us`."""
        self.spent["computed_us"] = self.computed_us + us

    def require_cpu(self) -> None:
        """Refuse to compute more for the attempt than its CPU time.

        Raises:
            CallRefused: ``budget_exceeded``.
        """
        if self.computed_us >= self.claim.limits.cpu_ms * 1000:
            what = f"what the engine computes for a run takes at most the run's CPU time, {self.claim.limits.cpu_ms} ms"
            raise CallRefused("budget_exceeded", what)

    async def number(self, rows: TableDataset, of: int = 1) -> int | None:
        """Return a key generated by the set's database; None if the key is known only after the commit.

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


#: Number of keys that a run takes at once after its first insert.
KEYS_AT_ONCE = 20
Handler = Callable[[Session, dict[str, Any]], Awaitable[Any]]
