"""Alembic's environment: each migration runs on the caller's connection, inside the caller's transaction."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    # SQLite can only add columns; every other change copies the table.
    render_as_batch=True,
)
context.run_migrations()
