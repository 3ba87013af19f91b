"""How many examples the properties of this folder draw: few in the suite, many with ``LODGER_FUZZ=whole``, a tenth with ``brief``."""

import os

_TIMES = {"whole": 50.0, "brief": 0.1}.get(os.environ.get("LODGER_FUZZ", ""), 1.0)


def examples(few: int) -> int:
    """Number of examples in this run, by the number in the suite."""
    return max(1, int(few * _TIMES))
