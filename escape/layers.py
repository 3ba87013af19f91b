"""The layers that cases name, with what each one stops: the walls of the sandbox, and further checks of runtime and engine."""

from dataclasses import dataclass

from lodger.escape.catalogue import TABLES
from lodger.sandbox.doctor import WALLS


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer and what it stops."""

    name: str
    stops: str


LAYERS: dict[str, Layer] = {
    **{wall.name: Layer(wall.name, wall.holds_off) for wall in WALLS},
    **{name: Layer(name, stops) for name, stops in TABLES["layers"].items()},
}

#: Maps a layer of runtime ``quickjs`` to its counterpart on ``quickjs-native``.
_NATIVE = {
    "store_limit": "engine_memory",
    "guest_stack": "engine_stack",
    "soft_stop": "cpu_timer",
}


def on_runtime(name: str, runtime: str) -> str:
    """Return the name of a layer's counterpart on a runtime."""
    return _NATIVE.get(name, name) if runtime == "quickjs-native" else name
