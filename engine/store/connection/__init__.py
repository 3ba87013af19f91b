"""Connections and transactions of the ledger's database. It must never hold a query on an aggregate."""
