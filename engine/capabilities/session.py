"""What the capabilities of one attempt share: its tenant, its journal, its budgets, a way to read."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.core.access.grants import Grants
from lodger.engine.data.sets.dataset import Dataset, TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.numbers import Numbers
from lodger.engine.data.sets.scope import Scope
from lodger.engine.effects.journal import Journal
from lodger.engine.store.tenants.secrets import Opened
from lodger.engine.vault.redaction import Redactor
from lodger.sandbox.limits import Limits

T = TypeVar("T")


class QueryRunner(Protocol):
    """Runs a question on a connection that may only read; no transaction outlives the question."""

    async def __call__(self, work: Callable[[Connection], T]) -> T:
        """Give what ``work`` answers."""
        ...


class TenantQueryRunner(Protocol):
    """The same, of a set wherever it is, or of Lodger's own tables; for this tenant, whatever ``work`` asks."""

    async def __call__(self, work: Callable[[Connection], T], rows: Dataset | None = None) -> T:
        """Give what ``work`` answers."""
        ...


class AttemptBudgets(Protocol):
    """The attempt's budgets."""

    def spend(self, name: str, amount: int = 1, *, happened: bool = False) -> None:
        """Draw on a budget, or refuse; what has ``happened`` counts either way."""
        ...

    def left(self, name: str) -> int:
        """Give what remains."""
        ...

    def rows(self) -> dict[str, dict[str, dict[str, int]]]:
        """Give all of them as scripts see them."""
        ...


class AddressLookup(Protocol):
    """Knows who belongs to a tenant."""

    async def __call__(self, tenant_id: str, addresses: Collection[str], /) -> Collection[str]:
        """Give those of the addresses that are the tenant's own people's."""
        ...


class SecretLookup(Protocol):
    """Gives secrets of the attempt's tenant with their values."""

    async def __call__(self, names: Collection[str], /) -> dict[str, Opened]:
        """Give those of them that there are."""
        ...


@dataclass(frozen=True, slots=True)
class Session:
    """One attempt, as its capabilities see it.

    Attributes:
        schedule_id: scope of the schedule's own keys; None for a request without schedule.
        now_us: the instant the attempt calls now.
        new_id: makes keys.
        grants: what the attempt holds.
        people: which of some addresses are the tenant's own people's.
        fetching: its requests.
        opens: gives values of secrets; redactor: knows those that the script was given.
        consumer: whose place in a feed this run moves on: its schedule's, or its script's when it has none.
        numbers: takes keys that a database makes from it.
        limits: of its process; ``storage``: what its tenant may store and stores.
    """

    tenant_id: str
    schedule_id: str | None
    scope: Scope
    journal: Journal
    datasets: Datasets
    budgets: AttemptBudgets
    read: TenantQueryRunner
    now_us: int
    new_id: Callable[[], str]
    grants: Grants
    people: AddressLookup
    fetch_state: FetchState
    opens: SecretLookup
    redactor: Redactor
    consumer: str = ""
    numbers: Numbers | None = None
    limits: Limits = field(default_factory=Limits)
    storage: tuple[int, int] | None = None
    stock: dict[TableDataset, list[int]] = field(default_factory=dict)

    async def number(self, rows: TableDataset, of: int = 1) -> int | None:
        """Take a key of a set from its database; None when that tells it only at the commit.

        Args:
            of: how many are going to be taken.
        """
        if self.numbers is None:
            return None
        left = self.stock.get(rows)
        if not left:
            # One for who inserts one; some for who inserts some: each time the database is asked, and what is not used is lost.
            found = await self.numbers(rows, max(of, 1 if left is None else NUMBERS))
            if found is None:
                return None
            left = self.stock[rows] = found[::-1]
        return left.pop()


#: Keys that are taken at once by a run that has inserted one already.
NUMBERS = 20
Handler = Callable[[Session, dict[str, Any]], Awaitable[Any]]
