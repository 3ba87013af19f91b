"""The verbs on nodes, named locks and metrics."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from lodger.engine.core.access import names
from lodger.engine.core.access.roles import Role
from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import InputError
from lodger.engine.core.metrics import Metric, ProcessMetrics, joined, labelled, prometheus_text
from lodger.engine.recurrence.duration import parse_duration
from lodger.engine.service.nouns.base import Noun, aware
from lodger.engine.service.operations.declaration import M, local, operation
from lodger.engine.store.connection import lock_waits
from lodger.engine.store.connection.lock_waits import Chain
from lodger.engine.store.platform import gauges, locks, node_rows
from lodger.engine.store.platform.locks import Lock
from lodger.engine.store.platform.node_rows import NodeRow

# Inside the class ``list`` is a verb.
NodeList = list[NodeRow]


class Nodes(Noun[M]):
    """The running engine processes."""

    __slots__ = ()

    @operation("GET", "/nodes", Role.OPERATOR)
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
        """
        return self._set_paused("nodes.pause", node, self._now_us)

    @operation("POST", "/nodes/{node}/resume", Role.OPERATOR)
    def resume(self, node: str) -> NodeRow:
        """Let a paused node start actions again.

        Raises:
            NotFound: node_unknown.
        """
        return self._set_paused("nodes.resume", node, None)

    def _set_paused(self, verb: str, node: str, paused_us: int | None) -> NodeRow:
        with self._changing(verb, None, node) as change:
            found = node_rows.get(self.context, change.connection, node, self._now_us)
            change.before({"name": found.name, "state": found.state})
            node_rows.set_paused(change.connection, found.id, paused_us)
            now = node_rows.get(self.context, change.connection, found.id, self._now_us)
            return change.made(now, after={"name": now.name, "state": now.state})


LockList = list[Lock]
#: Maximum lease, microseconds; a living holder renews it.
MAX_US = 86_400_000_000


class Locks(Noun[M]):
    """Named locks between the platform's processes. Their changes are frequent and not in the audit log."""

    __slots__ = ()

    @operation("POST", "/locks/{name}/take", Role.OPERATOR, may_fail=True)
    def take(
        self, name: str, holder: str, lease: float | str | timedelta = "1m", *, slot: datetime | None = None
    ) -> Lock | None:
        """Take a lock, or renew it by taking it again; None if another holder has it.

        Args:
            holder: name of the holder, such as host and process; equal names are the same holder.
            lease: time after which the lock is freed if it is not renewed: milliseconds, a timedelta, or a text such as
                ``"90s"``; at most a day, by the database's time if several machines share it.
            slot: take it for this occurrence of a schedule: only one holder gets it, also after it was freed.

        Raises:
            InputError: lock_name_invalid, lock_holder_invalid, lock_lease_invalid, instant_naive.
        """
        names.check(name, "lock_name_invalid", "a lock", "use a name such as rebuild-index")
        names.check(
            holder, "lock_holder_invalid", "a lock's holder", "use for example the host's name and the process's id"
        )
        lease_us, at = _us(lease), aware(slot)
        if not 0 < lease_us <= MAX_US:
            raise InputError(
                "lock_lease_invalid",
                f"a lock cannot have the lease {lease!r}",
                why="the lease of a lock is more than zero and at most a day",
                fix='"1m"',
            )
        with self.context.database.write() as connection:
            slot_us = None if at is None else to_us(at)
            return locks.take(self.context, connection, name, holder, lease_us, slot_us, self._now_us)

    @operation("POST", "/locks/{name}/free", Role.OPERATOR, may_fail=True)
    def free(self, name: str, holder: str) -> bool:
        """Free a lock; False if this holder did not have it."""
        with self.context.database.write() as connection:
            return locks.free(self.context, connection, name, holder, self._now_us)

    @operation("GET", "/locks", Role.OPERATOR)
    def list(self) -> LockList:
        """List every lock that was ever taken, by name, with its holder."""
        with self.context.database.read() as connection:
            return locks.list_all(self.context, connection, self._now_us)


def _us(lease: float | str | timedelta) -> int:
    if isinstance(lease, str):
        return parse_duration(lease)
    if isinstance(lease, timedelta):
        return lease // timedelta(microseconds=1)
    # The comparison is false for NaN, too.
    return round(lease * 1000) if abs(lease) < MAX_US else 0


@dataclass(frozen=True, slots=True)
class Metrics(Noun[M]):
    """Metrics of this process, of the nodes in other processes, and of the ledger."""

    process_metrics: ProcessMetrics

    @operation("GET", "/metrics", Role.OPERATOR, items="metrics")
    def read(self) -> list[Metric]:
        """Return every metric with its values: those of this process, of the nodes, and of the ledger.

        Metrics of nodes in other processes have the label ``node`` and are up to ten seconds old.
        """
        return self._all()

    def _all(self) -> list[Metric]:
        with self.context.database.read() as connection:
            of_ledger = gauges.read(self.context, connection, self._now_us)
            others = node_rows.metrics_of_others(self.context, connection, self.process_metrics.process, self._now_us)
        of_nodes = [metric for name, figures in others for metric in labelled(figures, "node", name)]
        return joined([*self.process_metrics.read(), *of_nodes, *of_ledger])

    @local("is not JSON: GET /metrics/text")
    def text(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return prometheus_text(self._all(), process=True)

    @operation("GET", "/metrics/blocked", Role.OPERATOR)
    def blocked(self) -> list[Chain]:
        """List database sessions that have waited for a lock for a second, with the sessions that block them; empty on SQLite."""
        with self.context.database.read() as connection:
            return lock_waits.chains(connection)
