"""Why a journal was not applied. Each names the effect and the line of the script that asked for it."""

from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome


class NotApplied(Exception):
    """The journal changed nothing.

    Attributes:
        outcome: how the attempt ends.
        code: stable machine name.
        message: one sentence for the author; no SQL, no Python text, no other tenant's value.
        index: 0-based place of the effect in the journal.
        file, line: where the script made the call; None when unknown.
    """

    outcome = Outcome.EFFECT_REFUSED

    def __init__(self, code: str, message: str, *, index: int, place: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.index = index
        file, _, row = (place or "").rpartition(":")
        self.file = file or None
        self.line = int(row) if row.isdecimal() else None

    def as_error(self) -> ScriptError:
        """Give the error as the action row shows it."""
        return ScriptError(name=type(self).__name__, message=self.message, file=self.file, line=self.line)


class EffectRefused(NotApplied):
    """The database forbids an effect: a constraint, a reference to nothing of this tenant's."""


class ConflictFound(NotApplied):
    """A row that was to be written no longer holds what the attempt read; running again will see the new one."""

    outcome = Outcome.CONFLICT


class WriteBlocked(Exception):
    """Something that the journal writes is held by somebody else just now; the same journal may be applied a little later.

    ``message`` is for the author, ``index`` and ``place`` as for :class:`NotApplied`.
    """

    def __init__(self, message: str, *, index: int = 0, place: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.index = index
        self.place = place

    def as_conflict(self) -> ConflictFound:
        """Give what it is to an attempt that has waited long enough."""
        return ConflictFound("conflict", self.message, index=self.index, place=self.place)
