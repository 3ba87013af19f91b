"""Rules in English: the sentences that Lodger writes, and short forms such as ``every weekday at 9``, read as other languages."""

from lodger.engine.recurrence.english.parser import begins, translate

__all__ = ["begins", "translate"]
