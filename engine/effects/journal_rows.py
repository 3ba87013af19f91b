"""State of the rows, values and feeds that an attempt has read or written."""

from dataclasses import dataclass, field
from typing import Any

from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.store.queue.followers import Position


@dataclass(slots=True)
class WrittenRow:
    """A row that the journal writes.

    Attributes:
        base: content as the attempt read it; None for an inserted row.
        now: content as the attempt sees it; None once deleted.
        checked: whether the commit compares ``base`` with the present row.
        first: index of the first effect on it.
        line: position of that call in the script.
        token: whether its key is a token for one that the database will generate.
    """

    base: Row | None
    now: Row | None
    checked: bool
    first: int
    line: str | None = None
    token: bool = False


@dataclass(slots=True)
class KnownRows:
    """The known rows of one dataset: those read, and those written or checked."""

    seen: dict[Any, Row] = field(default_factory=dict)
    touched: dict[Any, WrittenRow] = field(default_factory=dict)


@dataclass(slots=True)
class KnownValue:
    """The known state of one key of kv.

    ``base`` is JSON text as read; ``known`` is false if it was never read, ``shown`` is true if the script has seen it.
    """

    base: str | None = None
    known: bool = False
    shown: bool = False
    checked: bool = False
    now: str | None = None
    written: bool = False
    first: int = 0
    line: str | None = None


@dataclass(slots=True)
class FeedPosition:
    """Position of an attempt in a feed: ``base`` is the ledger's, ``at`` the position after the changes read so far."""

    source: str
    base: Position | None
    at: Position
