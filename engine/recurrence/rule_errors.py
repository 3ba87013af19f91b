"""Errors of rules and schedules."""

from datetime import datetime

from lodger.engine.core.errors import InputError
from lodger.engine.recurrence.search import OutOfSteps


class RuleInvalid(InputError):
    """The text is not a rule of its language; ``index`` is the 0-based position of the mistake."""


class RuleNeverFires(InputError):
    """The schedule has no slot before year 10000; ``why`` is the proof in words."""


class SearchEnded(InputError, OutOfSteps):
    """No slot was found in the steps of a listing; there is none up to ``reached``."""

    def __init__(self, reached: datetime) -> None:
        super().__init__("search_ended", reached=f"{reached:%Y-%m-%d %H:%M:%S}")
        self.reached = reached
