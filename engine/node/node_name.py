"""What a node may be called."""

import re

from lodger.engine.core.errors import InputError

#: Most letters of a node's name.
NAME_LENGTH = 200


def named(name: str) -> str:
    """Check a node's name, which is a label too.

    Raises:
        InputError: node_name_invalid.
    """
    if not 1 <= len(name) <= NAME_LENGTH or not name.isprintable() or re.search(r"[\s,]", name):
        raise InputError(
            "node_name_invalid",
            f"{name!r} cannot name a node",
            why=f"a name has 1 to {NAME_LENGTH} printable characters, no space and no comma",
            fix="such as the host's name",
        )
    return name
