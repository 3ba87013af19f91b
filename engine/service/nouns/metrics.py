"""The verbs on metrics: numbers for operators."""

from dataclasses import dataclass

from lodger.engine.core.metrics import Meters, Metric, joined, labelled, prometheus_text
from lodger.engine.service.nouns.noun import Verbs
from lodger.engine.store.connection import blocking
from lodger.engine.store.connection.blocking import Chain
from lodger.engine.store.platform import gauges, node_rows


@dataclass(frozen=True, slots=True)
class Metrics(Verbs):
    """Numbers for operators: what this process has counted, what nodes of other processes have, and what the ledger holds."""

    meters: Meters

    def read(self) -> list[Metric]:
        """Return every metric of :data:`lodger.engine.core.metrics.METERS` with its values.

        What nodes of other processes have counted carries the label ``node``; it is up to ten seconds old.
        """
        with self.books.database.read() as connection:
            of_ledger = gauges.read(self.books, connection, self._now_us)
            others = node_rows.figures_of_others(self.books, connection, self.meters.process, self._now_us)
        of_nodes = [metric for name, figures in others for metric in labelled(figures, "node", name)]
        return joined([*self.meters.read(), *of_nodes, *of_ledger])

    def text(self) -> str:
        """Return them in Prometheus' text format."""
        return prometheus_text(self.read())

    def blocked(self) -> list[Chain]:
        """Return the sessions that have waited for a lock of the database for a second; always empty on SQLite."""
        with self.books.database.read() as connection:
            return blocking.chains(connection)
