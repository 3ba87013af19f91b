"""Opens the ledger that a verb works on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lodger.engine.sync import Engine


@contextmanager
def opened(place: str | None) -> Iterator["Engine"]:
    """Open the ledger at ``--db``, else where the settings say; closes it at the end.

    Raises:
        InputError, Unavailable: the place is no ledger, or the host refuses.
    """
    from lodger.engine.settings_table import load
    from lodger.engine.sync import Engine

    settings = load(database=place)
    engine = Engine.open(settings.database, settings=settings)
    try:
        yield engine
    finally:
        engine.close()
