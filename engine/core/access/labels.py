"""Labels: requirements of a schedule or tenant on a node, and properties of a node."""

import re
from collections.abc import Collection, Iterable

from lodger.engine.core.errors import InputError

#: Most labels of one schedule, tenant or node.
MAX = 20
_LABEL = re.compile(r"[a-z0-9][a-z0-9._/-]{0,62}", re.ASCII)
#: Labels that every node carries by itself: its name, each handler that is registered in its process, and each table exposed there.
NODE, HOST, SET = "node:", "host:", "set:"


def parse_labels(wish: str | Iterable[str] | None) -> tuple[str, ...]:
    """Read labels: a text with commas or spaces between them, or several. Sorted, each once.

    ``node:NAME`` binds to the node of that name.

    Raises:
        InputError: label_invalid.
    """
    given = re.split(r"[,\s]+", wish) if isinstance(wish, str) else list(wish or ())
    labels = {label for label in given if label != ""}
    for label in labels:
        bare = label.removeprefix(NODE) if isinstance(label, str) else label
        named = isinstance(label, str) and bare is not label and 0 < len(bare) <= 200 and not re.search(r"[\s,]", bare)
        if not named and not (isinstance(label, str) and _LABEL.fullmatch(label)):
            raise InputError("label_invalid", label=label)
    if len(labels) > MAX:
        raise InputError("label_invalid.many", count=len(labels), maximum=MAX)
    return tuple(sorted(labels))


def written(labels: Iterable[str]) -> str:
    """Return labels as the ledger keeps them: sorted, each once, a space between two."""
    return " ".join(sorted(set(labels)))


def carries(node: Collection[str], requires: str) -> bool:
    """Whether a node with these labels may run actions that require those (as :func:`written` gives them)."""
    return all(label in node for label in requires.split(" ")) if requires else True
