"""A wall-clock rule that another one takes over from at some moment."""

from dataclasses import dataclass

from lodger.engine.recurrence.rule import DstPolicy, LocalSeconds, LocalSequence


@dataclass(frozen=True, slots=True)
class Changed:
    """Members of one sequence before a local second, and of another from it on."""

    before: LocalSequence
    after: LocalSequence
    at: LocalSeconds

    def next_local(self, local: LocalSeconds, *, inclusive: bool = False) -> LocalSeconds | None:
        """First member after (or at) the local second."""
        local += not inclusive
        if local < self.at:
            found = self.before.next_local(local, inclusive=True)
            if found is not None and found < self.at:
                return found
        return self.after.next_local(max(local, self.at), inclusive=True)

    def previous_local(self, local: LocalSeconds, *, inclusive: bool = False) -> LocalSeconds | None:
        """Last member before (or at) the local second."""
        local -= not inclusive
        if local >= self.at:
            found = self.after.previous_local(local, inclusive=True)
            if found is not None and found >= self.at:
                return found
        return self.before.previous_local(min(local, self.at - 1), inclusive=True)

    def text(self) -> str:
        """The sentence of the first of them."""
        return self.before.text()

    def ends(self) -> bool:
        """Whether the members are finite."""
        return self.after.ends()

    def default_dst(self) -> DstPolicy:
        """That of the first of them."""
        return self.before.default_dst()
