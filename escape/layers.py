"""The layers that cases name, with what each one stops: the walls of the sandbox, and further checks of runtime and engine."""

from lodger.escape.catalogue import TABLES
from lodger.sandbox.doctor import WALLS

#: What each layer stops, by its name.
LAYERS: dict[str, str] = {**{wall.name: wall.holds_off for wall in WALLS}, **TABLES["layers"]}

#: Maps a layer of runtime ``quickjs`` to its counterpart on ``quickjs-native``.
_NATIVE = {
    "store_limit": "engine_memory",
    "guest_stack": "engine_stack",
    "soft_stop": "cpu_timer",
}


def on_runtime(name: str, runtime: str) -> str:
    """Return the name of a layer's counterpart on a runtime."""
    return _NATIVE.get(name, name) if runtime == "quickjs-native" else name
