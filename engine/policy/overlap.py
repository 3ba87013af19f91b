"""What an on-time slot becomes while an earlier action of its schedule is unfinished."""

from enum import StrEnum

from lodger.engine.core.errors import InputError


class Overlap(StrEnum):
    """The five ways. Only ``allow`` lets two actions of one schedule run at once; all others start in slot order."""

    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    QUEUE_ALL = "queue_all"
    CANCEL_RUNNING = "cancel_running"
    ALLOW = "allow"


def parse_overlap(text: str) -> Overlap:
    """Read the word.

    Raises:
        InputError: overlap_invalid.
    """
    try:
        return Overlap(text.strip().lower())
    except ValueError:
        raise InputError(
            "overlap_invalid",
            f"there is no overlap policy {text!r}",
            why="it says what a slot becomes while an earlier action of the schedule is unfinished",
            fix="one of: " + ", ".join(Overlap),
        ) from None
