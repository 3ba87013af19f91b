"""The wings: features with few ties, each in a folder of its own. This is the one list of them.

The main line knows no wing. A wing declares its tables on the store's metadata, gives its verbs as mixins to the nouns below, and appends
to the hooks of lower layers in its ``__init__``; surfaces load its routes, pages and commands with :func:`parts`. To remove a wing,
delete its folder here and in ``tests/features``, and the lines of this module that name it.
"""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from lodger.engine.features.locks import operations as locks
from lodger.engine.service.operations import table
from lodger.engine.service.operations.declaration import M


class Nouns(
    locks.LockNouns[M],
    table.Nouns[M],
):
    """The nouns of every engine and client, with those of the wings."""


def parts(name: str) -> Iterator[ModuleType]:
    """Import the module of this name of each wing that has one, such as ``commands``."""
    for wing, module in list(globals().items()):
        if (
            isinstance(module, ModuleType)
            and find_spec(f"{__name__}.{wing}")
            and find_spec(f"{__name__}.{wing}.{name}")
        ):
            yield import_module(f"{__name__}.{wing}.{name}")


#: The operations of all nouns.
TABLE = table.table_of(Nouns)
