"""The starter of limited Node.js without some walls: their names come before the arguments of ``sandbox/child/node_starter.py``."""

import sys

if __name__ == "__main__":  # as in the real program: only the package folder can be imported
    _package = type(sys)("lodger")
    _package.__path__ = [sys.argv[2].rpartition("/")[0]]
    sys.modules["lodger"] = _package

from lodger.sandbox.child import node_starter


def _nothing(*_given: object, **_more: object) -> None:
    """Raise no wall."""


#: What raises each wall.
WALLS = {
    "filter": {"filter_calls": lambda parent: parent.send(b"-")},
    "landlock": {"forbid_writing": _nothing},
    "root": {"take_files_away": _nothing},
    "limits": {"lower_limits": _nothing, "lock": _nothing},
}


if __name__ == "__main__":
    for _wall in sys.argv.pop(1).split():
        for _name, _weak in WALLS[_wall].items():
            setattr(node_starter, _name, _weak)
    node_starter.main()
