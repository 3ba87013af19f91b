"""The service asks for descriptors; whatever else uses Lodger keeps the limit that it has."""

import resource
import subprocess
import sys

from lodger.engine.cli.up import MAX_DESCRIPTORS

CODE = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from lodger.engine.cli.up import raise_descriptor_limit
raise_descriptor_limit()
raise_descriptor_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def asked(soft: int, hard: int) -> list[int]:
    """Return the limits of a process that had these and asked."""
    command = [sys.executable, "-c", CODE.format(soft=soft, hard=hard)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return [int(word) for word in said.split()]


def test_it_has_what_the_host_gives_and_no_more_than_is_of_use() -> None:
    _soft, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    known = 2**40 if maximum == resource.RLIM_INFINITY else maximum
    assert asked(64, maximum) == [min(MAX_DESCRIPTORS, known), maximum]
    assert asked(64, 100) == [100, 100]
    assert asked(known if maximum != resource.RLIM_INFINITY else 64, maximum)[1] == maximum
