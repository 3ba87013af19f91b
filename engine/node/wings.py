"""The hook of wings that have a service in each node."""

from collections.abc import Callable
from dataclasses import dataclass

from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_environment import NodeEnvironment
from lodger.engine.node.running_attempts import RunningAttempts
from lodger.engine.node.service import Service
from lodger.sandbox.job import Runs


@dataclass(frozen=True, slots=True)
class NodeParts:
    """Everything of a node that a wing's service may use.

    Attributes:
        delivers: whether this node sends mails and webhooks.
        pool: workers for scripts; None if something else runs them.
    """

    context: NodeContext
    host: NodeEnvironment
    attempts: RunningAttempts
    delivers: bool
    pool: Runs | None


#: Make a service for a node, None if the node needs none; appended to by wings.
SERVICES: list[Callable[[NodeParts], Service | None]] = []
