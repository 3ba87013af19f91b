"""Wing: pings, scripts that are one HTTP request."""

from lodger.engine.features.pings.executor import PingExecutor
from lodger.engine.features.pings.operations import ScriptVerbs
from lodger.engine.node.executors import by_kind

by_kind.KINDS["ping"] = PingExecutor

__all__ = ["ScriptVerbs"]
