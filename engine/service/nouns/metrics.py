"""The verbs on metrics: numbers for operators."""

from dataclasses import dataclass

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.metrics import Meters, Metric
from lodger.engine.service.nouns.noun import Verbs
from lodger.engine.store.connection import blocking
from lodger.engine.store.connection.blocking import Chain
from lodger.engine.store.platform import gauges


@dataclass(frozen=True, slots=True)
class Metrics(Verbs):
    """Numbers for operators: what this process has counted, and what the ledger holds."""

    meters: Meters

    def read(self) -> list[Metric]:
        """Give every meter of :data:`lodger.engine.core.metrics.METERS` with its values."""
        with self.books.database.read() as connection:
            return [*self.meters.read(), *gauges.read(self.books, connection, self._now_us)]

    def text(self) -> str:
        """Give them in Prometheus' text format; needs the extra ``metrics``.

        Raises:
            Unavailable: metrics_missing.
        """
        try:
            from lodger.engine.service.exposition import exposed
        except ModuleNotFoundError as error:
            raise Unavailable(
                "metrics_missing",
                "prometheus-client is not installed",
                why=str(error),
                fix="pip install 'lodger[metrics]'",
            ) from None
        return exposed(self.read())

    def blocked(self) -> list[Chain]:
        """Give who has waited for a lock of the database for a second, and for whom; always empty on SQLite."""
        with self.books.database.read() as connection:
            return blocking.chains(connection)
