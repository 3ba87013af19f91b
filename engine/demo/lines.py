"""The demo as plain progressive lines, for a pipe, a log or a terminal without a screen."""

from collections.abc import Callable
from datetime import datetime

from lodger.engine.demo import demo_words
from lodger.engine.demo.mailbox import Mail
from lodger.engine.demo.story import Item, Missed, Run, Story


class Lines:
    """Writes each item as it arrives.

    Args:
        write: takes one line without its end.
        now: the engine's clock, for "in 3 s".
    """

    def __init__(self, story: Story, write: Callable[[str], None], now: Callable[[], datetime]) -> None:
        self._story, self._write, self._now = story, write, now
        self._announced = False
        story.on_item = self._line

    def refresh(self) -> None:
        """Write once what is due, after the missed slots were accounted for; other items were written when they arrived."""
        now, upcoming = self._now(), self._story.upcoming
        if self._announced or not upcoming or any(each.next_at is not None and each.next_at < now for each in upcoming):
            return
        self._announced = True
        for each in upcoming:
            self._write(f"due     {each.tenant}/{each.name}: {each.text}; next {demo_words.soon(each, now)}")

    def _line(self, item: Item) -> None:
        match item:
            case Mail():
                self._write(f"mail    to {', '.join(item.to)}: {item.subject}")
            case Missed():
                self._write(f"missed  {item.tenant}/{item.name}: {demo_words.missed(item)}")
            case Run():
                self._run(item)
            case _:
                self._write(f"note    {item}")

    def _run(self, run: Run) -> None:
        head = "ran     " if run.ok else "stopped " if run.stopped_by else "failed  "
        said = run.stopped_by or run.said
        self._write(f"{head}{run.tenant}/{run.name} ({demo_words.late(run)}): {said or 'no result'}")
        for line in run.place:
            self._write("        " + line)
