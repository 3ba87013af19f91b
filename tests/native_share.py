"""The share of runtime ``quickjs-native`` in a run: it is optional, and no tenant can choose it, so one case in ten is everyday."""

import os
import zlib

import pytest

from lodger.sandbox.runtimes.native_libraries import has_native

NATIVE = "quickjs-native"
ONE_IN = 10


def runs_all() -> bool:
    """Whether every case of the optional runtime is wanted: ``LODGER_RUNTIMES=all``."""
    return os.environ.get("LODGER_RUNTIMES") == "all"


def share(items: list[pytest.Item]) -> list[pytest.Item]:
    """Mark the cases of a runtime that is not installed as skipped, and return those that a run leaves out; always the same ones."""
    native = [item for item in items if NATIVE in item.name]
    if not has_native():
        for item in native:
            item.add_marker(
                pytest.mark.skip(f"NOT TESTED on {NATIVE}: it is not installed (pip install 'lodger[native]')")
            )
        return []
    if runs_all():
        return []
    return [item for item in native if zlib.crc32(item.nodeid.encode()) % ONE_IN]
