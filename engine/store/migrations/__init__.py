"""The one Alembic tree for both databases. It must never import a table: a migration states the schema of its time."""
