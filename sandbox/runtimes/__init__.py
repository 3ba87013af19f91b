"""Runtimes that execute a script inside a worker, one module each. They must never decide which walls apply."""
