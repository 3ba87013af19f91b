"""``lodger doctor``: which walls stand on this host, what is missing and how to get it."""


def doctor() -> None:
    """Soon."""
