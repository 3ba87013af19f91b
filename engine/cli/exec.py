"""``lodger exec``."""


def execute() -> None:
    """Soon."""
