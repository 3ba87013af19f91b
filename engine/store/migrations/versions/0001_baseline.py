"""The schema of the first release, which :mod:`lodger.engine.store.migrations.baseline` creates in an empty database."""

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
compatible_with = "0001"


def upgrade() -> None:
    """Do nothing: no database has an earlier schema."""
