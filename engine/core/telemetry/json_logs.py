"""Log records as JSON lines, with the tenant and the action that they are about."""

import json
import logging
import os
from contextvars import ContextVar
from datetime import UTC, datetime

from lodger.engine.core.clock import zulu
from lodger.engine.core.plain_text import one_line

#: Fields that identify what a record is about.
FIELDS = ("tenant_id", "schedule_id", "action_id", "attempt", "trace_id")
TRACEBACK = "LODGER_TRACEBACK"
#: Fields of every record of the present task.
_bound: ContextVar[dict[str, object] | None] = ContextVar("lodger_log_fields", default=None)


def bind(**fields: object) -> None:
    """Add fields to every later record of the present task."""
    _bound.set((_bound.get() or {}) | fields)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the fields that are known, and the traceback of an error.

    A record's own fields (``extra``) win over the task's.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a log record as one line of JSON."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        body: dict[str, object] = {
            "time": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        body |= _bound.get() or {}
        body |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            body["error"] = self.formatException(record.exc_info)
        return json.dumps(body, default=str)


class LineFormatter(logging.Formatter):
    """A line a record: time, level, message; tracebacks only with ``LODGER_TRACEBACK``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a log record as one line of text."""
        at = zulu(datetime.fromtimestamp(record.created, UTC).replace(microsecond=0))
        line = f"{at}  {record.levelname.lower():8}  {one_line(record.getMessage())}"
        return (
            f"{line}\n{self.formatException(record.exc_info)}"
            if record.exc_info and os.environ.get(TRACEBACK)
            else line
        )


def use(formatter: logging.Formatter) -> None:
    """Set the formatter of every handler of Lodger's logger."""
    for handler in logging.getLogger("lodger").handlers:
        handler.setFormatter(formatter)
