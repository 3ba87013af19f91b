"""Scripts that are WebAssembly modules."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.add_column("lodger_script_versions", sa.Column("wasm", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Go back; versions that are modules have no place there, and what is bound to them fails when it runs."""
    op.drop_column("lodger_script_versions", "wasm")
