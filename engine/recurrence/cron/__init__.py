"""Cron expressions as a sequence of local times; it knows nothing of zones, instants or the clock.

The parser reads the text to days and times.
"""

from lodger.engine.recurrence.cron.parser import CronText, parse

__all__ = ["CronText", "parse"]
