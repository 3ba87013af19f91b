"""How many examples the properties of this folder draw: few in the suite, many with ``LODGER_FUZZ=whole``."""

import os

_TIMES = 50 if os.environ.get("LODGER_FUZZ") == "whole" else 1


def examples(few: int) -> int:
    """So many in the suite, fifty times as many when asked for."""
    return few * _TIMES
