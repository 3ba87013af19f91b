"""Rules that are one rule to their author: a union that says the sentence of the whole."""

from collections.abc import Sequence

from lodger.engine.recurrence.rule import Recurrence
from lodger.engine.recurrence.union import Union
from lodger.engine.recurrence.zoned import Zoned


class Mixed(Union):
    """Union of the parts of a rule.

    Args:
        whole: the rule as it was written; it says the sentence.
        parts: what it is asked as: groups with DST defaults of their own, rules with an UNTIL of their own.
    """

    def __init__(self, whole: Zoned, parts: Sequence[Recurrence]) -> None:
        super().__init__(parts)
        self.whole = whole

    def text(self) -> str:
        """One exact English sentence with the zone."""
        return self.whole.text()
