"""The verbs on nodes and metrics."""

from collections.abc import Callable
from functools import partial
from typing import Any

from lodger.engine.core.access.roles import Role
from lodger.engine.core.metrics import Metric, joined, labelled, prometheus_text
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, local, operation
from lodger.engine.store.connection import lock_waits
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.connection.lock_waits import Chain
from lodger.engine.store.platform import gauges, node_rows
from lodger.engine.store.platform.node_rows import NodeRow

# Inside the class ``list`` is a verb.
NodeList = list[NodeRow]


class Nodes(Noun[M]):
    """The running engine processes."""

    @operation("GET", "/nodes", Role.AUDITOR)
    def list(self, *, gone: bool = False) -> NodeList:
        """List the living nodes by name; with ``gone`` also stopped and lost ones, as long as they are kept."""
        with self.context.database.read() as connection:
            return node_rows.list_all(self.context, connection, self._now_us, gone=gone)

    @operation("POST", "/nodes/{node}/pause", Role.OPERATOR)
    def pause(self, node: str) -> NodeRow:
        """Let a node, by name or id, start no more actions; running ones may end, and other nodes take the waiting ones.

        It lasts until :meth:`resume` or the end of the node's process.

        Raises:
            NotFound: node_unknown.
            InputError: node_ambiguous.
        """
        return self._set_paused(Nodes.pause, node, self._now_us)

    @operation("POST", "/nodes/{node}/resume", Role.OPERATOR)
    def resume(self, node: str) -> NodeRow:
        """Let a paused node start actions again.

        Raises:
            NotFound: node_unknown.
            InputError: node_ambiguous.
        """
        return self._set_paused(Nodes.resume, node, None)

    def _set_paused(self, verb: Callable[..., Any], node: str, paused_us: int | None) -> NodeRow:
        """Pause or resume a node."""
        with self._changing(verb, None, node) as change:
            found = node_rows.get(self.context, change.connection, node, self._now_us)
            change.before({"name": found.name, "state": found.state})
            node_rows.set_paused(change.connection, found.id, paused_us)
            now = node_rows.get(self.context, change.connection, found.id, self._now_us)
            return change.made(now, after={"name": now.name, "state": now.state})


class Metrics(Noun[M]):
    """Metrics of this process, of the nodes in other processes, and of the ledger."""

    @operation("GET", "/metrics", Role.AUDITOR, items="metrics")
    def read(self) -> list[Metric]:
        """Return every metric with its values: those of this process, of the nodes, and of the ledger.

        Metrics of nodes in other processes have the label ``node`` and are up to ten seconds old.
        """
        return self._all()

    def _all(self) -> list[Metric]:
        """Return the metrics of the ledger, of this process and of others."""
        with self.context.database.read() as connection:
            of_ledger, others = read_together(
                partial(gauges.read, self.context, connection, self._now_us),
                partial(
                    node_rows.metrics_of_others, self.context, connection, self.process_metrics.process, self._now_us
                ),
                connection=connection,
            )
        of_nodes = [metric for name, figures in others for metric in labelled(figures, "node", name)]
        return joined([*self.process_metrics.read(), *of_nodes, *of_ledger])

    @local("is not JSON: GET /metrics/text")
    def text(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return prometheus_text(self._all(), process=True)

    @operation("GET", "/metrics/blocked", Role.AUDITOR)
    def blocked(self) -> list[Chain]:
        """List database sessions that have waited for a lock for a second, with the sessions that block them; empty on SQLite."""
        return self._read(lock_waits.chains)
