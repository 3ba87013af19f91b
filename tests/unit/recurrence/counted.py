"""Schedules that count what a question looks at, to hold it against what was proved when they were kept."""

from typing import Any

from lodger.engine.recurrence.freed import Freed
from lodger.engine.recurrence.union import Union


class Counted:
    """Something whose methods of some names are counted."""

    def __init__(self, source: Any, names: tuple[str, ...]) -> None:
        self.source, self.names, self.asked = source, names, 0

    def __getattr__(self, name: str) -> Any:
        self.asked += name in self.names
        return getattr(self.source, name)


class Counting:
    """The rules of a schedule with exclusions, each counting how often a question asks it and leaps over a stretch."""

    def __init__(self, schedule: Union) -> None:
        self._rules: list[tuple[Freed, Counted, Counted]] = []
        for each in schedule.asked:
            assert isinstance(each, Freed)
            source = Counted(each.source, ("next_after", "previous_before"))
            leaps = Counted(each.spread, ("free",))
            each.source = source  # type: ignore[assignment]  # a rule that counts what it is asked
            if each.spread is not None:
                each.spread = leaps  # type: ignore[assignment]  # the same
            self._rules.append((each, source, leaps))

    def begin(self) -> None:
        """Count a new question."""
        for _, source, leaps in self._rules:
            source.asked = leaps.asked = 0

    def hold(self) -> None:
        """Hold what was counted against what was proved."""
        for each, source, leaps in self._rules:
            assert source.asked <= each.most.asked, (source.asked, each.most.asked)
            assert leaps.asked <= each.most.leaps, (leaps.asked, each.most.leaps)
