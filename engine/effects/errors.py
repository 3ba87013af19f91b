"""Why a journal was not applied."""


class EffectRefused(Exception):
    """The database refused a write of the journal; ``line`` is the author's line of the call, when known."""

    line: int | None = None


class ConflictFound(Exception):
    """A row that the journal writes no longer holds what the attempt read."""
