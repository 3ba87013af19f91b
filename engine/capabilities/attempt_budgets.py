"""Use of an attempt's budgets and of its tenant's day, refusals of calls that would pass them, and shares of that day."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from lodger.engine.core.refusal import CallRefused
from lodger.engine.policy.budget_table import BUDGETS, BY_NAME, NAMES, Overdrawn, crossed
from lodger.engine.store.context import StoreContext
from lodger.engine.store.usage import budget_reservations
from lodger.engine.store.usage.budget_reservations import ReservationRequest
from lodger.sandbox.outcome import Outcome

#: Called once with a budget of the attempt that is nearly used up: its name, its limit, its use.
Warn = Callable[[str, int, int], None]
_DEFAULTS = {spec.name: spec.attempt for spec in BUDGETS}


@dataclass(slots=True)
class DayRoom:
    """The part of its tenant's day that an attempt may use.

    Attributes:
        limit: of the day.
        before: used today when the attempt was claimed.
        room: how much of the rest is this attempt's.
    """

    limit: int
    before: int
    room: int


@dataclass(slots=True)
class Counters:
    """Used amounts of an attempt's budgets.

    Attributes:
        limits: the budgets of the attempt, by name; others have their defaults.
        day: of budgets that have a limit a day.
        held: reserved for calls under way, and not available to others.
        warn: called at four fifths of a budget.
        dry: budgets with nothing left of the day.
        host_calls: the limit of the process on calls that ask something, None for no limit; ``asked`` counts them.
    """

    limits: Mapping[str, int] = field(default_factory=dict)
    day: dict[str, DayRoom] = field(default_factory=dict)
    warn: Warn = lambda _name, _limit, _used: None
    used: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    held: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    dry: set[str] = field(default_factory=set)
    host_calls: int | None = None
    asked: int = 0

    def ask(self) -> None:
        """Count a host call that waits for an answer, and warn near the limit of the process, which the sandbox enforces."""
        self.asked += 1
        if self.host_calls is not None and crossed(self.host_calls, self.asked - 1, self.asked):
            self.warn("host_calls", self.host_calls, self.asked)

    def limit(self, name: str) -> int | None:
        """Return a budget of the attempt; None where a limit of the process bounds it."""
        return self.limits.get(name, _DEFAULTS[name])

    def spend(self, name: str, amount: int = 1, *, happened: bool = False) -> None:
        """Draw on a budget.

        Args:
            happened: the amount has been used already and counts, refused or not.

        Raises:
            CallRefused: ``budget_exceeded`` with the row of the table that says so.
        """
        used, limit, today = self.used[name], self.limit(name), self.day.get(name)
        over = None
        if limit is not None and used + amount > limit:
            over = Overdrawn(name, "attempt", limit, used, amount)
        elif today is not None and used + amount > today.room:
            over = Overdrawn(name, "day", today.limit, self._of_day(name, today), amount)
        if over is None or happened:
            self.note(name, amount)
        if over is not None:
            raise refusal(over)

    def _of_day(self, name: str, today: DayRoom) -> int:
        """Return how much of the day is used as far as this attempt knows; if nothing more can be reserved, others use or hold the rest."""
        own = self.used[name]
        return max(today.before + own, today.limit - today.room + own if name in self.dry else 0)

    def note(self, name: str, amount: int) -> None:
        """Count a used amount, also beyond the budget."""
        used, limit = self.used[name], self.limit(name)
        self.used[name] = used + amount
        if limit is not None and crossed(limit, used, used + amount):
            self.warn(name, limit, used + amount)

    def left(self, name: str, own: int = 0) -> int:
        """Return the remaining amount of the attempt, or of the day if that is less.

        Args:
            own: amount that the asking call holds; amounts that other calls hold are not available.
        """
        limit, today = self.limit(name), self.day.get(name)
        rests = [] if limit is None else [limit - self.used[name]]
        if today is not None:
            rests.append(today.room - self.used[name] - (self.held[name] - own))
        return max(0, min(rests, default=1 << 50))

    def lacking(self, name: str) -> int:
        """Return the amount of the day to reserve for calls under way; 0 if there is enough, or if the day is used up."""
        today, limit = self.day.get(name), self.limit(name)
        if today is None or BY_NAME[name].effect or name in self.dry:
            return 0
        wanted = self.used[name] + self.held[name]
        return max(0, (wanted if limit is None else min(wanted, limit)) - today.room)

    def grant(self, name: str, asked: int, share: int) -> None:
        """Add a share of the tenant's day that was reserved for this attempt; a share smaller than asked for is the last one."""
        self.day[name].room += share
        if share < asked:
            self.dry.add(name)

    def spent(self) -> dict[str, int]:
        """Return the budgets that were used, by name."""
        return {name: amount for name, amount in self.used.items() if amount}

    def rows(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return the table as a script sees it: limit, use and rest of each budget of the attempt, and of the day."""
        mine = {name: shown(limit, self.used[name]) for name in NAMES if (limit := self.limit(name)) is not None}
        if self.host_calls is not None:
            mine["host_calls"] = shown(self.host_calls, self.asked)
        days = {name: shown(today.limit, self._of_day(name, today)) for name, today in self.day.items()}
        return {"attempt": mine, "day": days}


@dataclass(slots=True)
class Share:
    """The part of the day that one call holds while it is answered; spent amounts are held no more."""

    counters: Counters
    held: dict[str, int]

    def take(self) -> None:
        """Hold the amounts of this call, so that no other call uses them."""
        for name, amount in self.held.items():
            self.counters.held[name] += amount

    def leave(self) -> None:
        """Give up the amounts of the day that this call still holds."""
        for name in self.held:
            self._release(name, self.held[name])

    def _release(self, name: str, amount: int) -> None:
        """Hold up to this amount of a budget no longer."""
        gone = min(amount, self.held.get(name, 0))
        if gone:
            self.held[name] -= gone
            self.counters.held[name] -= gone

    def spend(self, name: str, amount: int = 1, *, happened: bool = False) -> None:
        """Draw on a budget with the amounts that this call holds; see :meth:`Counters.spend`."""
        self._release(name, amount)
        self.counters.spend(name, amount, happened=happened)

    def left(self, name: str) -> int:
        """Return the remaining amount of a budget."""
        return self.counters.left(name, self.held.get(name, 0))

    def rows(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return all budgets as scripts see them."""
        return self.counters.rows()


class BudgetReservations:
    """Gets shares of tenants' days for running attempts; requests at the same time are one transaction, in a thread of its own."""

    def __init__(self, store: StoreContext) -> None:
        self._store = store
        self._waiting: list[tuple[ReservationRequest, asyncio.Future[int]]] = []
        self._task: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None

    async def __call__(self, wish: ReservationRequest) -> int:
        """Return the reserved amount, 0 when nothing is left of the day."""
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((wish, answer))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._serve(), name="lodger-budgets")
        return await answer

    async def _serve(self) -> None:
        """Reserve for all waiting calls, until none waits."""
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="lodger-budgets")
        while self._waiting:
            asked, self._waiting = self._waiting, []
            try:
                drawn = await loop.run_in_executor(self._thread, self._draw, [wish for wish, _answer in asked])
            except Exception as error:  # noqa: BLE001 - each waiting call gets it
                for _wish, answer in asked:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_wish, answer), share in zip(asked, drawn, strict=True):
                if not answer.done():
                    answer.set_result(share)

    def _draw(self, wishes: list[ReservationRequest]) -> list[int]:
        """Reserve the amounts of all requests in one transaction; return the granted amounts in their order."""
        with self._store.database.write() as connection:
            return budget_reservations.reserve(self._store, connection, wishes)

    async def close(self) -> None:
        """End the thread that reserves; safe to call twice."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            await asyncio.gather(task, return_exceptions=True)
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None


def shown(limit: int, used: int) -> dict[str, int]:
    """Return limit, use and rest of a budget as scripts see them."""
    return {"limit": limit, "used": used, "left": max(0, limit - used)}


def refusal(overdrawn: Overdrawn) -> CallRefused:
    """Return the refusal of a call that would pass a budget; its details are the budget's row."""
    return CallRefused("budget_exceeded", overdrawn.message, outcome=Outcome.CALL_LIMIT, details=overdrawn.as_dict())
