"""What one attempt may ask of the engine, from one declaration: enforcement, error text and documentation read this table."""

from dataclasses import dataclass, field

from lodger.engine.data.refusal import CallRefused
from lodger.sandbox.outcome import Outcome


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    """One budget of an attempt."""

    name: str
    default: int
    help: str


BUDGETS: tuple[BudgetSpec, ...] = (
    BudgetSpec("queries", 100, "questions put to the database"),
    BudgetSpec("rows_read", 10_000, "rows given to the script"),
    BudgetSpec("rows_written", 1000, "rows and keys inserted, changed or removed"),
    BudgetSpec("bytes_written", 8 * 1024 * 1024, "letters of all writing calls, refused ones included"),
    BudgetSpec("mails", 100, "recipients of mails"),
    BudgetSpec("events", 100, "events told to webhooks"),
    BudgetSpec("fetches", 20, "requests"),
    BudgetSpec("fetch_bytes", 8 * 1024 * 1024, "bytes of bodies that requests send and are answered, decoded"),
)

_DEFAULTS = {spec.name: spec.default for spec in BUDGETS}
_HELP = {spec.name: spec.help for spec in BUDGETS}


@dataclass(slots=True)
class Counters:
    """What an attempt has used of its budgets.

    Attributes:
        most: the budgets, by name; what is not named has its default.
    """

    most: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_DEFAULTS, 0))

    def spend(self, name: str, amount: int = 1) -> None:
        """Draw on a budget.

        Raises:
            CallRefused: ``budget_exceeded``; what was asked is not done.
        """
        limit = self.most.get(name, _DEFAULTS[name])
        if self.used[name] + amount > limit:
            raise CallRefused(
                "budget_exceeded",
                f"budget {name} is {limit} per attempt ({_HELP[name]}); do less, and let the next run go on",
                outcome=Outcome.CALL_LIMIT,
            )
        self.used[name] += amount

    def left(self, name: str) -> int:
        """Give what remains of a budget."""
        return self.most.get(name, _DEFAULTS[name]) - self.used[name]
