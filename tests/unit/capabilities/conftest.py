"""The shop of these tests, on every database."""

from tests.databases.fixtures import kind, url
from tests.unit.data.conftest import shop

__all__ = ["kind", "shop", "url"]
