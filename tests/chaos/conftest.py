"""Settings of the chaos tests."""

from pathlib import Path

import pytest
from tests.databases.fixtures import kind, name, relay, server, url

__all__ = ["kind", "name", "relay", "server", "url"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Extend timeouts, because other processes may be slow on a busy machine."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            own = item.get_closest_marker("timeout")
            item.add_marker(pytest.mark.timeout(max(1200, own.args[0] if own else 0)), append=False)
