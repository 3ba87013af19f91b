"""Tests of wings, a folder for each; they use the bench of the store's tests."""

from tests.databases.fixtures import place
from tests.store.conftest import bench, empty_url, kind, name, relay, server, url

__all__ = ["bench", "empty_url", "kind", "name", "place", "relay", "server", "url"]
