"""``lodger demo``."""


def demo() -> None:
    """Soon."""
