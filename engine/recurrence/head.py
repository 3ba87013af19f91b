"""What a rule's text begins with: the name of a property or part (``RRULE:``, ``FREQ=``), and the sign after it.

Read without a regular expression, as all of a bare RRULE is: a program that asks ``lodger next`` about one does not wait
for ``re`` to be imported and its patterns compiled.
"""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-"


def head(text: str) -> tuple[str, str]:
    """Leading letters and hyphens as they are written, and the character after them; each may be empty."""
    name = text[: len(text) - len(text.lstrip(_LETTERS))]
    return name, text[len(name) : len(name) + 1]


def is_number(text: str, *, digits: int) -> bool:
    """Whether the text is a whole number of at most so many digits, with or without a sign."""
    figures = text[1:] if text.startswith(("+", "-")) else text
    return len(figures) <= digits and figures.isascii() and figures.isdigit()
