"""What an attempt knows of the rows, values and feeds that it has met: as it was given them, and as it has made them."""

from dataclasses import dataclass, field
from typing import Any

from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.store.queue.followers import Position


@dataclass(slots=True)
class WrittenRow:
    """A row that the journal writes.

    Attributes:
        base: as the attempt read it; None for a row that it inserts.
        now: as its own reads see it; None once deleted.
        checked: the commit compares ``base`` with what is there.
        first: index of the first effect on it.
        line: where the script first asked for it.
        token: its key stands for one that the database will make.
    """

    base: Row | None
    now: Row | None
    checked: bool
    first: int
    line: str | None = None
    token: bool = False


@dataclass(slots=True)
class KnownRows:
    """What the journal knows of one set."""

    seen: dict[Any, Row] = field(default_factory=dict)
    touched: dict[Any, WrittenRow] = field(default_factory=dict)


@dataclass(slots=True)
class KnownValue:
    """What the journal knows of one key of kv.

    ``base`` is JSON text as read; ``known`` tells None from never read, ``shown`` that the script was given it.
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
    """How far an attempt has read a feed: ``base`` is what the ledger says, or would say if what was read so far were committed."""

    source: str
    base: Position | None
    at: Position
