"""Errors of a journal that was not applied, each with the effect and the line of the script."""

from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome


class NotApplied(Exception):
    """The journal was not applied.

    Attributes:
        outcome: outcome of the attempt.
        code: stable machine name.
        message: one sentence for the author, without SQL, Python text, or values of other tenants.
        index: 0-based index of the effect in the journal.
        file, line: position of the call in the script; None if unknown.
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
        """Return this refusal as the script's error, which the action's row shows."""
        return ScriptError(name=type(self).__name__, message=self.message, file=self.file, line=self.line)


class EffectRefused(NotApplied):
    """The database refuses an effect: a constraint, or a reference to a row that this tenant does not have."""


class ConflictFound(NotApplied):
    """A row that was to be written has changed since the attempt read it; a repeated attempt reads the new one."""

    outcome = Outcome.CONFLICT


class WriteBlocked(Exception):
    """A row that the journal writes is locked by another transaction; the same journal may be applied a little later.

    ``conflict`` is the end of an attempt that has waited long enough.
    """

    def __init__(self, conflict: ConflictFound) -> None:
        super().__init__(conflict.message)
        self.conflict = conflict
