"""Cron expressions as a sequence of local times; it knows nothing of zones, instants or the clock.

The parser reads text, the rule answers questions, the words explain it.
"""

from lodger.engine.recurrence.cron.parser import CronText, parse
from lodger.engine.recurrence.cron.rule import CronRule

__all__ = ["CronRule", "CronText", "parse"]
