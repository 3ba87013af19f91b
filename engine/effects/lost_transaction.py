"""A transaction that SQLite has ended by itself, in the middle of what it was asked.

A platform's trigger does that with ``RAISE(ROLLBACK)``, a rule of its table with ``ON CONFLICT ROLLBACK``, and SQLite sometimes
when its disk is full. Savepoints are gone with it, and so is everything that others have written in the same transaction; whatever is
written next would be committed by itself. So nothing more may be written there: all of it begins anew, without the run whose
effect did it. PostgreSQL ends nothing but the statement.
"""

from collections.abc import Iterator

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from lodger.engine.effects.errors import EffectRefused
from lodger.engine.store.stores import driver_of

_WHAT = "a trigger or a rule of the table ends the whole transaction, and is not obeyed; let it say RAISE(ABORT) or ON CONFLICT ABORT"


class Overthrown(Exception):
    """The transaction is gone.

    Attributes:
        refused: what becomes of the run whose effect did it.
        action_id: of that run, where the transaction was one of several.
    """

    def __init__(self, refused: EffectRefused) -> None:
        super().__init__(refused.message)
        self.refused = refused
        self.action_id: str | None = None


def refused(named: str, *, index: int, place: str | None) -> Overthrown:
    """Give the error for an effect that ended the transaction."""
    return Overthrown(EffectRefused("rolled_back", f"{named}: {_WHAT}", index=index, place=place))


def over(connection: Connection) -> bool:
    """Whether the transaction that the connection believes to be in is gone."""
    return driver_of(connection).is_transaction_lost(connection)


def behind(error: BaseException) -> BaseException:
    """Give what ended the transaction, where ``error`` only says that its savepoint is not there any more."""
    *_, first = (each for each in _chain(error) if isinstance(each, Overthrown | DBAPIError))
    return next((each for each in _chain(error) if isinstance(each, Overthrown)), first)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
