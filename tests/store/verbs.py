"""Every verb of the engine with its arguments."""

import inspect

from lodger.engine.service.nouns.base import Noun
from lodger.engine.sync import Engine


def every_verb(engine: Engine) -> set[str]:
    nouns = {name: noun for name, noun in vars(engine).items() if isinstance(noun, Noun)}
    return {
        f"{name}.{verb}"
        for name, noun in nouns.items()
        for verb, _method in inspect.getmembers(type(noun), inspect.isfunction)
        if not verb.startswith("_")
    }
