"""Events of a node that carry answers of the store and the effects; the others are :mod:`lodger.engine.core.events`."""

from collections.abc import Mapping
from dataclasses import dataclass

from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.effects.outcome_commit import Committed
from lodger.engine.effects.sealed_commits import Finish
from lodger.engine.store.lifecycle import tick


@dataclass(frozen=True, slots=True)
class Ticked:
    """A tick has written actions and gaps."""

    schedules: tuple[tick.Ticked, ...]


@dataclass(frozen=True, slots=True)
class Claimed:
    """This node has claimed actions.

    Attributes:
        spent: tenants that had to be passed over because a budget of their day is used up, and which.
    """

    claims: tuple[Claim, ...]
    spent: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AttemptFinished:
    """An attempt has ended by itself and is to be committed."""

    claim: Claim
    finished: Finished


@dataclass(frozen=True, slots=True)
class AttemptStopped:
    """An attempt was killed; its action is another's already. ``finished`` has its logs and usage till then."""

    claim: Claim
    finished: Finished


@dataclass(frozen=True, slots=True)
class BatchCommitted:
    """Ends of attempts were written, or dropped where the lease was gone."""

    batch: tuple[tuple[Claim, Finished], ...]
    committed: Committed


@dataclass(frozen=True, slots=True)
class SealedSettled:
    """A sealed attempt has come to its end."""

    finish: Finish


@dataclass(frozen=True, slots=True)
class CancelledWritten:
    """Logs and usage of cancelled attempts were written."""

    attempts: tuple[tuple[Claim, Finished], ...]
