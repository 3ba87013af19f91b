"""The shop of these tests, on every database."""

from tests.databases.fixtures import kind, url
from tests.unit.data.conftest import bare, shop, still

__all__ = ["bare", "kind", "shop", "still", "url"]
