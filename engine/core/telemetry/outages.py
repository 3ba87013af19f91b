"""Log lines about outages of the host's services: one when an outage begins, one every 30 s with a count, one when it is over."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from lodger.engine.core.errors import Unavailable

#: Seconds between two lines about one outage.
EVERY_S = 30.0
#: An outage is over after so long without a failure: longer than a service waits before it tries again, seconds.
QUIET_S = 10.0


@dataclass(slots=True)
class _Outage:
    begun_s: float
    said_s: float
    last_s: float
    number: int = 1


class Outages:
    """The outages of one process, by the code of their error.

    Args:
        log: receives the lines.
        elapsed_s: a clock that never steps.
    """

    def __init__(self, log: logging.Logger, elapsed_s: Callable[[], float]) -> None:
        self._log = log
        self._elapsed_s = elapsed_s
        self._present: dict[str, _Outage] = {}

    def failed(self, service: str, error: Unavailable) -> None:
        """Count a failure, and write a line if one is wanted."""
        now_s = self._elapsed_s()
        present = self._present.get(error.code)
        if present is None:
            self._present[error.code] = _Outage(now_s, now_s, now_s)
            self._log.error("%s: %s: %s", service, error.code, error)
            return
        present.number, present.last_s = present.number + 1, now_s
        if now_s - present.said_s >= EVERY_S:
            present.said_s, lasted_s = now_s, now_s - present.begun_s
            self._log.error("%s: %s for %.0f s, %d failures: %s", service, error.code, lasted_s, present.number, error)

    def works(self) -> None:
        """End the outages without a failure of late."""
        now_s = self._elapsed_s()
        for code, each in list(self._present.items()):
            if now_s - each.last_s >= QUIET_S:
                del self._present[code]
                self._log.warning("%s is over: %.0f s, %d failures", code, each.last_s - each.begun_s, each.number)
