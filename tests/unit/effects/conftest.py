"""The suite of the effects, on every database."""

from tests.databases.fixtures import kind, url

__all__ = ["kind", "url"]
