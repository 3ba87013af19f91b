"""Wing: records of attempts, and replays of them: as they were, with an edited source, or with another version."""

from lodger.engine.features.replays.kept import KeptRecords
from lodger.engine.features.replays.operations import ActionVerbs, ScriptVerbs
from lodger.engine.node.executors import host_side

host_side.RECORDERS.append(lambda read, clock: KeptRecords(read, clock).recording)

__all__ = ["ActionVerbs", "ScriptVerbs"]
