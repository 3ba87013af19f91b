"""Wing: durations of schedules against their history, and schedules that have become slower."""

from lodger.engine.features.slow_runs.operations import ScheduleVerbs
from lodger.engine.features.slow_runs.service import SlowRuns
from lodger.engine.node import wings

wings.SERVICES.append(lambda node: SlowRuns(node.context, node.host.process_metrics))

__all__ = ["ScheduleVerbs"]
