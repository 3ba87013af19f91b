"""Schedules and their revisions."""
