"""Log records as JSON lines, with the tenant and the action that they are about."""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

#: Fields that identify what a record is about.
FIELDS = ("tenant_id", "schedule_id", "action_id", "attempt", "trace_id")
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
        """Return the line of a record."""
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


def use_json() -> None:
    """Let every handler of Lodger's logger write JSON lines."""
    for handler in logging.getLogger("lodger").handlers:
        handler.setFormatter(JsonFormatter())
