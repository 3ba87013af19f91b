"""The one Alembic tree for both databases. It must never import a table: a migration says what was true at its time."""
