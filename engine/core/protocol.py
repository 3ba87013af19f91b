"""``Protocol`` for the type checker, an ordinary class at run time.

``lodger next`` is asked thousands of times by other programs, and importing ``typing`` would take a third of what starting Python takes.
"""

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is
if TYPE_CHECKING:
    from typing import Protocol
else:

    class Protocol:
        """Says what others look like; nobody asks at run time whether they do."""


__all__ = ["Protocol"]
