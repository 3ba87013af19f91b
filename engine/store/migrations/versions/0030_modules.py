"""Scripts that are WebAssembly modules."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("lodger_script_versions", sa.Column("wasm", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Downgrade the schema; versions that are modules are deleted, and schedules bound to them fail when they run."""
    op.drop_column("lodger_script_versions", "wasm")
