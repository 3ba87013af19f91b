"""What every function of the ledger is given beside its connection: ids, the rulebook, settings. No state of its own."""

import json
from dataclasses import dataclass

from lodger.engine.clock import Clock
from lodger.engine.identity import Identities
from lodger.engine.ledger.database import Database
from lodger.engine.ledger.records import Json
from lodger.engine.ledger.rulebook import Rulebook
from lodger.engine.ledger.sources import Sources
from lodger.engine.settings import Settings


@dataclass(frozen=True, slots=True)
class Books:
    """The open ledger and what is needed to keep it."""

    database: Database
    clock: Clock
    ids: Identities
    rulebook: Rulebook
    sources: Sources
    settings: Settings


def dumped(value: Json) -> str | None:
    """JSON text of a value, None for None.

    Raises:
        ValueError, TypeError, RecursionError: it is no JSON, or text in it holds half of a surrogate pair.
    """
    if value is None:
        return None
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text.encode()  # UnicodeEncodeError is a ValueError: what no database can store is refused here, with the rest
    return text


def loaded(text: str | None) -> Json:
    """Give the value of a JSON text, None for None."""
    return None if text is None else json.loads(text)
