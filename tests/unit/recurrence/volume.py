"""How many examples the properties of this folder draw: few in the suite, many with ``LODGER_FUZZ=whole``, a tenth with ``brief``.

A number is that of each property: ``LODGER_FUZZ=200000 pytest tests/unit/recurrence/test_rrule_dateutil.py``.
"""

import os

_FUZZ = os.environ.get("LODGER_FUZZ", "")
_TIMES = {"whole": 50.0, "brief": 0.1}.get(_FUZZ, 1.0)


def examples(few: int) -> int:
    """Number of examples in this run, by the number in the suite."""
    return int(_FUZZ) if _FUZZ.isdigit() else max(1, int(few * _TIMES))
