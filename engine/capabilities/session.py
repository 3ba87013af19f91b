"""What the capabilities of one attempt share: its tenant, its journal, its budgets, a way to read."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from lodger.engine.data.datasets import Datasets
from lodger.engine.data.scope import Scope
from lodger.engine.effects.journal import Journal

T = TypeVar("T")


class Reads(Protocol):
    """Runs a question on a connection that may only read; no transaction outlives the question."""

    async def __call__(self, work: Callable[[Connection], T]) -> T:
        """Give what ``work`` answers."""
        ...


class Spends(Protocol):
    """The attempt's budgets."""

    def spend(self, name: str, amount: int = 1) -> None:
        """Draw on a budget, or refuse."""
        ...

    def left(self, name: str) -> int:
        """Give what remains."""
        ...


@dataclass(frozen=True, slots=True)
class Session:
    """One attempt, as its capabilities see it.

    Attributes:
        schedule_id: scope of the schedule's own keys; None for a request without schedule.
        now_us: the instant the attempt calls now.
        new_id: makes keys.
        mail_allowed: whether the tenant may write to an address; the platform's policy.
    """

    tenant_id: str
    schedule_id: str | None
    scope: Scope
    journal: Journal
    datasets: Datasets
    budgets: Spends
    read: Reads
    now_us: int
    new_id: Callable[[], str]
    mail_allowed: Callable[[str, str], bool]


Handler = Callable[[Session, dict[str, Any]], Awaitable[Any]]
