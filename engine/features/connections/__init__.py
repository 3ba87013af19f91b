"""Wing: connections, secrets that are tokens of an OAuth 2 provider, which the engine gets and renews."""

from lodger.engine.features.connections import connections
from lodger.engine.features.connections.operations import ConnectionNouns
from lodger.engine.features.connections.renewal import Renewals
from lodger.engine.node.executors import host_side
from lodger.engine.store.tenants import secrets

secrets.SEALED_ELSEWHERE.append(secrets.Sealing(connections.reencrypt, connections.keys_in_use))
host_side.TOKENS.append(Renewals)

__all__ = ["ConnectionNouns"]
