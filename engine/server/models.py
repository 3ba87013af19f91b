"""What a route takes, as pydantic models made from the verb's own signature; nothing that was not declared is let through."""

import inspect
import types
from functools import cache
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model

from lodger.engine.service.operations.route import Parameter, Route

T = TypeVar("T")
M = TypeVar("M", bound="Taken")
#: Entries of a page, unless said otherwise.
PAGE = 100
#: Longest text that a query or a path may hold, letters.
LONGEST = 2000


class Taken(BaseModel):
    """What every body and query shares: no field that is not declared, no text for a number."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=False, ser_json_inf_nan="null")


class Queried(Taken):
    """A query: all of it is text, so numbers are read from it."""

    model_config = ConfigDict(extra="forbid", strict=False)


def said(model: Taken) -> dict[str, Any]:
    """Give what was said, by the verb's own names; what was not said has the verb's own default."""
    return {name: getattr(model, name) for name in model.model_fields_set}


class Paged(BaseModel, Generic[T]):
    """A page of a list: ``next`` is the ``cursor`` of the page after, null on the last."""

    items: list[T]
    next: str | None


@cache
def body_of(route: Route) -> type[Taken] | None:
    """Give the model of a route's body; None for one that takes none."""
    return _model(route, route.at("body"), Taken, "Body")


@cache
def query_of(route: Route) -> type[Queried] | None:
    """Give the model of a route's query; None for one that takes none."""
    return _model(route, route.at("query"), Queried, "Query")


def _model(route: Route, parameters: tuple[Parameter, ...], base: type[M], kind: str) -> type[M] | None:
    if not parameters:
        return None
    fields: dict[str, Any] = {each.name: _field(route, each, kind) for each in parameters}
    title = "".join(part.title() for part in route.identity.split("_"))
    return create_model(f"{title}{kind}", __base__=base, __doc__=route.summary, **fields)


def _field(route: Route, parameter: Parameter, kind: str) -> Any:  # noqa: ANN401 - a field of pydantic's
    hint = parameter.kind
    if parameter.name == "limit" and route.kind == "page":
        return (Annotated[int, Field(ge=1, le=route.most)], min(PAGE, route.most))
    if kind == "Query":
        # A query is text: there is no null in it, only what is left out.
        hint = _bounded(_without_null(hint))
    if parameter.needed:
        return (hint, ...)
    default = parameter.shown
    if default is None or default is inspect.Parameter.empty:
        return (hint, Field(default_factory=lambda: None))
    return (hint, Field(default=list(default) if isinstance(default, tuple) else default))


def _without_null(hint: Any) -> Any:  # noqa: ANN401 - annotations in, annotations out
    if get_origin(hint) not in {Union, types.UnionType}:
        return hint
    kept = tuple(each for each in get_args(hint) if each is not type(None))
    return Union[kept]  # noqa: UP007 - made at run time


def _bounded(hint: Any) -> Any:  # noqa: ANN401 - annotations in, annotations out
    return Annotated[str, Field(max_length=LONGEST)] if hint is str else hint
