"""A test process that gets no CPU for ten seconds keeps its transaction on the server all the same.

The server ends a transaction of a client that says nothing for so long, which is there for processes that are stopped in the middle of one.
On a machine with thirty other processes that hit tests in the middle of a question. Engines in processes of their own are not touched.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from lodger.engine.store.drivers.postgresql import connections as postgresql

_NAME = "idle_in_transaction_session_timeout"
#: As long as a test may take.
PATIENCE_MS = 300_000


@contextmanager
def patient_server() -> Iterator[None]:
    """For the block, transactions of this process may pause for long."""
    before = postgresql.SESSION[_NAME]
    postgresql.SESSION[_NAME] = PATIENCE_MS
    try:
        yield
    finally:
        postgresql.SESSION[_NAME] = before
