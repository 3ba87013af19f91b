"""The packages of deploy/requirements.lock."""

import re

from tests.e2e.command import ROOT

LOCK = (ROOT / "deploy/requirements.lock").read_text()


ENTRY = re.compile(r"^(\S+)==(\S+)( ; .*?)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def locked() -> dict[str, str]:
    """Return the locked version of each package."""
    return {match[1]: match[2] for match in ENTRY.finditer(LOCK)}


def digests() -> dict[tuple[str, str], set[str]]:
    """Return the digests of each package and version."""
    return {(match[1], match[2]): set(re.findall(r"sha256:(\w+)", match[4])) for match in ENTRY.finditer(LOCK)}
