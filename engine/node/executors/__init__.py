"""Executors: real workers, HTTP pings, host handlers. They never hold a transaction."""
