"""Wing: connections, secrets that are tokens of an OAuth 2 provider, which the engine gets and renews."""

from lodger.engine.features.connections.operations import Connections
from lodger.engine.features.connections.renewal import Renewals
from lodger.engine.node.executors import host_side

host_side.TOKENS.append(Renewals)

__all__ = ["Connections"]
