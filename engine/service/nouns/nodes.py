"""The verbs on nodes: the engine's processes at work."""

from lodger.engine.service.nouns.noun import Verbs
from lodger.engine.store.platform import node_rows
from lodger.engine.store.platform.node_rows import NodeRow

# Inside the noun the word ``list`` is a verb.
NodeList = list[NodeRow]


class Nodes(Verbs):
    """The engine's processes at work."""

    __slots__ = ()

    def list(self, *, gone: bool = False) -> NodeList:
        """Give the living nodes by name; with ``gone`` also those that ended or were lost, as long as they are remembered."""
        with self.books.database.read() as connection:
            return node_rows.list_all(self.books, connection, self._now_us, gone=gone)
