"""The hook of wings that have a service in each node."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lodger.engine.node.service import Service

if TYPE_CHECKING:
    from lodger.engine.node.node import Node

#: Make a service for a node, None if the node needs none; appended to by wings.
SERVICES: "list[Callable[[Node], Service | None]]" = []
