"""Commands of these tests run in processes that wait for them, as those of the tests from end to end."""

from tests.e2e.conftest import begun

__all__ = ["begun"]
