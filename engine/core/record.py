"""Records: what ``@dataclass(frozen=True, slots=True)`` makes of a class, without the price of importing it.

``dataclasses``, with the ``inspect``, ``ast`` and ``tokenize`` behind it, takes as long to import as Python takes to start; a program
that asks ``lodger next`` about a rule would pay that for every answer. Whatever is not on that way is a dataclass, and to
whoever asks (``fields``, ``replace``, ``asdict``, pydantic) a record is one too.
"""

from __future__ import annotations

from operator import attrgetter

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without importing typing
if TYPE_CHECKING:
    from typing import Any, TypeVar, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_):  # noqa: ANN003, ANN201, D103 - for the type checker alone
        return lambda decorator: decorator


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class of annotated fields a record: frozen; equal, hashed and shown by its fields, which are its slots.

    A default is shared by all, so it must be immutable.
    """
    names = tuple(cls.__annotations__)
    body = {name: what for name, what in vars(cls).items() if name not in (*names, "__dict__", "__weakref__")}
    defaults = {name: vars(cls)[name] for name in names if name in vars(cls)}
    parameters = ", ".join(f"{name}=defaults[{name!r}]" if name in defaults else name for name in names)
    settings = "; ".join(f"set_{name}(self, {name})" for name in names)
    made: dict[str, Any] = {}
    known: dict[str, Any] = {"defaults": defaults}
    exec(f"def __init__(self, {parameters}): {settings}", known, made)  # noqa: S102 - names of a class of ours
    held = attrgetter(*names)

    def same(self: object, other: object) -> bool:
        return self is other or (type(other) is type(self) and bool(held(self) == held(other)))

    body |= made | {"__slots__": names, "__match_args__": names, "__dataclass_fields__": _Fields(defaults)}
    body |= {"__eq__": same, "__hash__": lambda self: hash(held(self)), "__repr__": _shown, "__reduce__": _reduced}
    body |= {"__setattr__": _frozen, "__delattr__": _frozen}
    finished = type(cls.__name__, cls.__bases__, body)
    known |= {f"set_{name}": vars(finished)[name].__set__ for name in names}
    return finished


def changed(original: T, **changes: object) -> T:
    """Give the record with some of its fields changed."""
    return type(original)(**{name: getattr(original, name) for name in _names(original)} | changes)


class _Fields:
    """The fields of a record as ``dataclasses`` describes them, when somebody asks."""

    def __init__(self, defaults: dict[str, Any]) -> None:
        self.defaults = defaults

    def __get__(self, _instance: object, owner: type) -> dict[str, Any]:
        from dataclasses import dataclass

        described: Any = dataclass(
            type(owner.__name__, (), {"__annotations__": owner.__annotations__, **self.defaults})
        )
        fields: dict[str, Any] = described.__dataclass_fields__
        owner.__dataclass_fields__ = fields  # type: ignore[attr-defined]  # said once
        return fields


def _names(one: Any) -> tuple[str, ...]:  # noqa: ANN401 - any record
    names: tuple[str, ...] = one.__slots__
    return names


def _frozen(self: object, name: str, *_: object) -> None:
    raise AttributeError(f"a {type(self).__name__} keeps the {name} it was made with")


def _reduced(self: object) -> tuple[type, tuple[object, ...]]:
    return type(self), tuple(getattr(self, name) for name in _names(self))


def _shown(self: object) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in _names(self))})"
