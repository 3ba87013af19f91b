"""Makes a command of a verb, from the verb's own signature: what must be given is an argument, the rest are options.

So Python, HTTP and the command line cannot drift apart; how an answer looks to people is :mod:`lodger.engine.cli.views`.
"""

import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from lodger.engine.cli import given
from lodger.engine.cli.answer import AsJson, Database, write_json
from lodger.engine.cli.ledger import opened
from lodger.engine.cli.verb_words import CALLED, WORDS, described, summary
from lodger.engine.cli.views import show

#: Arguments that are several texts, although the verb takes other things too.
SEVERAL = {"rules", "exclusions", "script", "labels"}
#: Arguments that are milliseconds, or a text such as 90s.
DURATIONS = {"delay", "lease"}
#: What a person writes where a program writes null.
NOTHING = "none"


@dataclass(frozen=True, slots=True)
class Command:
    """One verb on the command line.

    Attributes:
        name: of the command below its noun.
        verb: as in ``schedules.create``.
        arguments: what is given by position, in this order; all that must be given when there are none.
        wrap: the key that a list stands under in JSON.
        ask: the question that a person has to say yes to first; a program gives ``--yes``.
        view: shows the answer to people, when not by its kind.
        fixed: arguments with a value of their own here.
        failed: whether an answer says that it was asked for in vain: then the command ends with 1.
    """

    name: str
    verb: str
    arguments: tuple[str, ...] = ()
    wrap: str | None = None
    ask: str | None = None
    view: Callable[[Any], None] | None = None
    fixed: Mapping[str, Any] | None = None
    failed: Callable[[Any], bool] | None = None


def add(app: typer.Typer, *commands: Command) -> None:
    """Add commands to a noun."""
    for command in commands:
        app.command(command.name)(_function(command))


def _function(command: Command) -> Callable[..., None]:
    from lodger.engine.service.operations.table import NOUNS

    noun, verb = command.verb.split(".")
    function = getattr(NOUNS[noun], verb)
    hints = get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    shown = [each for each in parameters if each.name not in (command.fixed or {})]
    helps = described(function)

    def run(**said: Any) -> None:
        db, as_json = said.pop("db"), said.pop("as_json")
        if command.ask is not None:
            confirm(command.ask, said, yes=said.pop("yes"), as_json=as_json)
        arguments, many = dict(command.fixed or {}), ()
        for each in shown:
            value = said[each.name]
            if each.kind is inspect.Parameter.VAR_POSITIONAL:
                many = tuple(value)
            elif value is not None and value != []:
                arguments[each.name] = read(each.name, hints[each.name], value)
            elif each.default is inspect.Parameter.empty:
                raise _missing(each.name)
        with opened(db) as engine:
            call = getattr(getattr(engine, noun), verb)
            first = [arguments.pop(name) for name in [each.name for each in parameters][:1] if many]
            answer = call(*first, *many, **arguments)
        if as_json:
            following = getattr(answer, "next", None)
            write_json({command.wrap: answer} | ({"next": following} if following else {}) if command.wrap else answer)
        else:
            (command.view or show)(answer)
        if command.failed is not None and command.failed(answer):
            raise typer.Exit(1)

    positional = command.arguments or tuple(each.name for each in shown if each.default is inspect.Parameter.empty)
    by_name = {each.name: each for each in shown}
    ordered = [by_name[name] for name in positional] + [each for each in shown if each.name not in positional]
    signature = [_parameter(each, hints[each.name], helps, positional=each.name in positional) for each in ordered]
    signature += (
        [_option("yes", Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")], False)] if command.ask else []
    )
    signature += [_option("db", Database, None), _option("as_json", AsJson, False)]
    run.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]  # what the parser of options reads
    run.__annotations__ = {each.name: each.annotation for each in signature}
    run.__doc__ = summary(function)
    return run


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:  # noqa: ANN401 - an annotation
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _parameter(each: inspect.Parameter, hint: Any, helps: Mapping[str, str], *, positional: bool) -> inspect.Parameter:  # noqa: ANN401 - an annotation
    called = CALLED.get(each.name, each.name).replace("_", "-")
    told = helps.get(each.name) or WORDS.get(each.name, "")
    kind = _kind(each.name, hint)
    if positional:
        many = each.kind is inspect.Parameter.VAR_POSITIONAL
        about: Any = typer.Argument(metavar=called.upper() + ("..." if many else ""), help=told)
        reads: Any = list[str] if many else kind
        if each.name == "source":
            about, reads = (
                typer.Argument(metavar="FILE", help="Its source, or a folder of it, or a module; - is stdin."),
                Path,
            )
        needed = each.default is inspect.Parameter.empty
        default = inspect.Parameter.empty if needed or many else None
        return inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[reads, about], default=default
        )
    switch = kind is bool or get_origin(kind) is list
    short = ("-n",) if each.name in {"n", "limit"} else ()
    option: Any = typer.Option(f"--{called}", *short, metavar=None if switch else _metavar(each.name, hint), help=told)
    return _option(each.name, Annotated[kind | None, option], None)


def _kind(name: str, hint: Any) -> Any:  # noqa: ANN401 - annotations in, annotations out
    """Give what the command line reads an argument as: text, a number, a switch, several texts."""
    if name in SEVERAL or _is_list(hint):
        return list[str]
    for kind in (bool, int, float):
        if hint is kind or set(_members(hint)) == {kind, type(None)}:
            return kind
    return str


def _members(hint: Any) -> tuple[Any, ...]:  # noqa: ANN401 - an annotation
    return get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)


def _is_list(hint: Any) -> bool:  # noqa: ANN401 - an annotation
    return all(get_origin(each) in {Iterable, Sequence, list} for each in _members(hint) if each is not type(None))


def _metavar(name: str, hint: Any) -> str | None:  # noqa: ANN401 - an annotation
    if datetime in _members(hint):
        return "INSTANT"
    return "JSON" if _is_json(name, hint) else None


def _is_json(name: str, hint: Any) -> bool:  # noqa: ANN401 - an annotation
    plain = {str, int, float, bool, type(None), date, datetime}
    return name not in {"version", *DURATIONS, "schedule", *SEVERAL} and not set(_members(hint)) <= plain


def read(name: str, hint: Any, said: Any) -> Any:  # noqa: ANN401 - text in, the verb's own kind out
    """Read what was said as the verb wants it.

    Raises:
        Usage: not_json, instant_unreadable.
    """
    option = "--" + CALLED.get(name, name).replace("_", "-")
    if name == "source":
        return given.script(said)
    if name == "script" and isinstance(said, list):
        steps = [given.value(option, each) if each.startswith("{") else each for each in said]
        return steps[0] if len(steps) == 1 else steps
    if isinstance(said, list):
        return [] if said == [NOTHING] else said
    if name == "version" and str(said).isdigit():
        return int(said)
    if name in DURATIONS:
        return float(said) if str(said).replace(".", "", 1).isdigit() else said
    if isinstance(said, str) and said == NOTHING and type(None) in _members(hint):
        return None
    if datetime in _members(hint):
        return given.instant(option, said)
    if isinstance(said, str) and _is_json(name, hint):
        return _shaped(option, name, hint, given.value(option, said))
    return said


def _shaped(option: str, name: str, hint: Any, body: Any) -> Any:  # noqa: ANN401 - JSON in, the verb's own kind out
    from pydantic import ValidationError

    from lodger.engine.cli.failure import Usage
    from lodger.engine.core.serialization import unshaped
    from lodger.engine.service.operations.route import wire

    if hint is Any:
        return body
    try:
        found = unshaped(wire(hint), body)
    except (ValidationError, ValueError) as refused:
        errors = refused.errors() if isinstance(refused, ValidationError) else []
        why = str(errors[0]["msg"]) if errors else str(refused)
        raise Usage(
            "option_invalid", f"{option} cannot be {str(body)[:80]}", why=why, fix="see the verb's --help"
        ) from None
    # What is an object to the verb stays one: only what it knows as a record of its own is made one.
    return body if isinstance(body, int | dict) and name != "dst" else found


def _missing(name: str) -> Exception:
    from lodger.engine.cli.failure import Usage

    called = CALLED.get(name, name).replace("_", "-")
    what = WORDS.get(name, called).rstrip(".")
    return Usage(
        "option_missing",
        f"--{called} is missing",
        why=what,
        fix=f"--{called} {_EXAMPLES.get(name, '…')}",
    )


_EXAMPLES = {"rules": "'FREQ=DAILY;BYHOUR=9;BYMINUTE=0'", "script": "NAME"}


def confirm(question: str, said: Mapping[str, Any], *, yes: bool, as_json: bool) -> None:
    """Ask a person before something that cannot be taken back.

    Raises:
        Usage: not_confirmed.
    """
    import sys

    from lodger.engine.cli.failure import Usage

    asked = question.format(**{name: value for name, value in said.items() if isinstance(value, str)})
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise Usage("not_confirmed", f"{asked}?", why="nobody is there to be asked", fix="say --yes")
    if not typer.confirm(asked + "?", err=True):
        raise Usage("not_confirmed", "nothing was done", fix="say yes, or --yes")
