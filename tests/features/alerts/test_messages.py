"""Text of a script cannot make a line of an alert that looks like another event's."""

import json
from datetime import UTC, datetime

from lodger.engine.features.alerts import messages
from lodger.engine.features.alerts.messages import Alert
from lodger.engine.features.alerts.rules import AlertRule

FORGED = "2026-11-27T10:00:00Z  finished  acme  nightly  ok"


def test_each_alert_is_one_line_of_a_mail_and_of_a_chat() -> None:
    now = datetime(2026, 11, 27, tzinfo=UTC)
    rule = AlertRule(
        "acme", "ops", None, None, ("failed",), ("ops@example.com",), ("chat",), (), "UTC", 60, None, None, now, now
    )
    details = {"outcome": "script_error", "error": f"no stock\n{FORGED}\u202e"}
    rows = messages.compose(
        rule, [Alert("acme", "1", "ops", "failed", "s", "nightly", "a", details, 1, now, None, None)], "m"
    )
    mail, chat = (json.loads(row["payload"]) for row in rows)
    for text in (mail["text"], chat["data"]["text"]):
        assert [line for line in text.splitlines() if line.startswith(FORGED)] == []
        assert "\u202e" not in text
        assert FORGED in text
