"""The ledger's schema in a database: created from the declared tables, and upgraded by one Alembic tree for both databases.

A migration must never import a table: it states the change from the schema of its time.
"""
