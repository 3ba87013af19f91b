"""Generates commands from the table of operations: names, arguments, options and help from each operation's signature.

Positional parameters without default, and the tenant, become arguments; others become options. :mod:`lodger.engine.output.views`
formats results; a module of :mod:`lodger.engine.cli.commands` may override a command.
"""

import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from pydantic import ValidationError

from lodger.engine.cli.ledger import opened
from lodger.engine.core.errors import Usage
from lodger.engine.core.plain_text import visible
from lodger.engine.core.serialization import from_jsonable
from lodger.engine.features import TABLE, load
from lodger.engine.output import groups, inputs, script_files, views
from lodger.engine.output.result_output import Database, Group, Yes, is_for_program, write_json
from lodger.engine.service.operations.declaration import JOINED
from lodger.engine.service.operations.help_texts import WORDS, explained, summary
from lodger.engine.service.operations.route import Operation, wire

#: Parameters that are several texts, although the verb takes other things too.
SEVERAL = {"rules", "exclusions", "script", "labels"}
#: Parameters that are milliseconds, or a text such as 90s.
DURATIONS = {"delay", "lease"}
#: What a person writes where a program writes null.
NOTHING = "none"
#: What the command line calls a parameter.
CALLED = {
    "rules": "rule", "exclusions": "exclude", "grants": "grant", "labels": "label", "hosts": "host", "events": "event",
    "kinds": "kind", "webhooks": "webhook",
    "tenant_id": "tenant", "action_id": "action", "n": "slots",
}  # fmt: skip
_EXAMPLES = {"rules": "'FREQ=DAILY;BYHOUR=9;BYMINUTE=0'", "script": "NAME"}


load("commands")  # the wings add commands, and the views of their results


def group(word: str, special: Group | None) -> Group:
    """Return the commands of a noun: the hand-written ones, and one for each other operation."""
    from lodger.engine.cli.commands import bulk

    app = special or Group(no_args_is_help=True)
    noun = next((noun for noun in TABLE.nouns if word in {noun, noun.removesuffix("s")}), None)
    if noun in bulk.VERBS:
        bulk.add(noun, app)
    for add in groups.COMMANDS[word]:
        add(app, opened)
    there = {each.name or (each.callback.__name__ if each.callback else "") for each in app.registered_commands}
    for operation in TABLE.operations.values():
        name = command_name(operation)
        if operation.noun == noun and name is not None and name not in there:
            app.command(name)(_function(operation))
    if app.registered_callback is None:
        # Without one, an application of a single command takes no name of a command.
        app.callback()(lambda: None)
    return app


def command_name(operation: Operation) -> str | None:
    """Return the command name of an operation below its noun; None if it has no command."""
    if operation.declared.command is None:
        return None
    return operation.declared.command or {"get": "show"}.get(operation.verb, operation.verb.replace("_", "-"))


def _function(operation: Operation) -> Callable[..., None]:
    """Return the function of a command that is generated from an operation."""
    declared, function = operation.declared, operation.function
    hints = {name: str if get_origin(hint) is Literal else hint for name, hint in get_type_hints(function).items()}
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name not in ("self", JOINED)]
    positional = _positional(operation, parameters)
    helps = explained(function)

    def run_command(**said: Any) -> None:
        """Carry out the operation as the command line asks, and print its result."""
        db = said.pop("db")
        if declared.confirm is not None:
            confirm(declared.confirm, said, yes=said.pop("yes"))
        arguments = {}
        for each in parameters:
            value = said[each.name]
            if value is not None and value != []:
                arguments[each.name] = read(each.name, hints[each.name], value, positional=each.name in positional)
            elif each.default is inspect.Parameter.empty:
                raise _missing(each.name)
        with opened(db, creates=declared.changes) as engine:
            result = operation.call(engine, arguments)
        if is_for_program():
            write_json(_body(operation, hints, said, positional, result))
        else:
            views.show(operation, result)
        if declared.may_fail and not result:
            raise typer.Exit(1)

    by_name = {each.name: each for each in parameters}
    ordered = [by_name[name] for name in positional] + [each for each in parameters if each.name not in positional]
    signature = [_parameter(each, hints[each.name], helps, positional=each.name in positional) for each in ordered]
    signature += [_option("yes", Yes, False)] if declared.confirm else []
    signature += [_option("db", Database, None)]
    run_command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]  # what the parser of options reads
    run_command.__annotations__ = {each.name: each.annotation for each in signature}
    run_command.__doc__ = re.sub(r"^Return ", "Show ", _sentence(summary(function)))
    return run_command


def _positional(operation: Operation, parameters: Sequence[inspect.Parameter]) -> tuple[str, ...]:
    """Return the parameters that are arguments of the command."""
    if operation.declared.arguments is not None:
        return operation.declared.arguments
    return tuple(
        each.name
        for each in parameters
        if each.kind is not inspect.Parameter.KEYWORD_ONLY
        and (each.default is inspect.Parameter.empty or (each is parameters[0] and each.name == "tenant_id"))
    )


def _body(
    operation: Operation,
    hints: Mapping[str, Any],
    said: Mapping[str, Any],
    positional: Sequence[str],
    result: Any,
) -> Any:
    """Return the JSON value that ``--json`` prints: the result; an object around a list, with its next cursor; or the name of the
    changed thing."""
    if hints["return"] is type(None):
        return {operation.verb + "d": said[positional[-1]]}
    if not isinstance(result, list):
        return result
    items = operation.declared.items or (operation.noun if operation.verb == "list" else operation.verb)
    following = getattr(result, "next", None)
    return {items: result} | ({"next": following} if following else {})


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return an option of a generated command as a parameter that Typer reads."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _parameter(each: inspect.Parameter, hint: Any, helps: Mapping[str, str], *, positional: bool) -> inspect.Parameter:
    """Return the argument or option for an operation's parameter, with its help."""
    called = CALLED.get(each.name, each.name).replace("_", "-")
    help_text = _sentence(helps.get(each.name) or WORDS.get(each.name, ""))
    kind = _kind(each.name, hint)
    if positional:
        many = each.kind is inspect.Parameter.VAR_POSITIONAL
        about: Any = typer.Argument(metavar=called.upper() + ("..." if many else ""), help=help_text)
        reads: Any = list[str] if many else kind
        if each.name == "source":
            about = typer.Argument(
                metavar="FILE", help="JavaScript file, folder with a main.js, or WebAssembly module; - reads stdin."
            )
            reads = Path
        needed = each.default is inspect.Parameter.empty
        default = inspect.Parameter.empty if needed or many else None
        return _option(each.name, Annotated[reads, about], default)
    switch = kind is bool or get_origin(kind) is list
    short = ("-n",) if each.name in {"n", "limit"} else ()
    option: Any = typer.Option(
        f"--{called}", *short, metavar=None if switch else _metavar(each.name, hint), help=help_text
    )
    return _option(each.name, Annotated[kind | None, option], None)


def _kind(name: str, hint: Any) -> Any:
    """Return a parameter's type on the command line: text, number, switch or several texts."""
    if (name in SEVERAL and not set(_members(hint)) <= {str, type(None)}) or _is_list(hint):
        return list[str]
    for kind in (bool, int, float):
        if hint is kind or set(_members(hint)) == {kind, type(None)}:
            return kind
    return str


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union type."""
    return get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)


def _is_list(hint: Any) -> bool:
    """Whether a type hint stands for several values."""
    return all(get_origin(each) in {Iterable, Sequence, list} for each in _members(hint) if each is not type(None))


def _metavar(name: str, hint: Any) -> str | None:
    """Return the placeholder of an option in the help."""
    if datetime in _members(hint):
        return "INSTANT"
    return "JSON" if _is_json(name, hint) else None


def _is_json(name: str, hint: Any) -> bool:
    """Whether an option of this type is written as JSON text."""
    plain = {str, int, float, bool, type(None), date, datetime}
    return name not in {"version", *DURATIONS, "schedule", *SEVERAL} and not set(_members(hint)) <= plain


def read(name: str, hint: Any, said: Any, *, positional: bool = False) -> Any:
    """Convert an argument to the parameter's type.

    Raises:
        Usage: not_json, instant_unreadable, option_invalid.
    """
    option = "--" + CALLED.get(name, name).replace("_", "-")
    if name == "source":
        return script_files.script(said)
    if name == "script" and isinstance(said, list):
        steps = [inputs.value(option, each) if each.startswith("{") else each for each in said]
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
        return inputs.instant(option, said, positional=positional)
    if isinstance(said, str) and _is_json(name, hint):
        return _from_json(option, name, hint, inputs.value(option, said))
    return said


def _from_json(option: str, name: str, hint: Any, body: Any) -> Any:
    """Return a JSON option's value in the parameter's type; raises Usage (option_invalid) if it has another form."""
    if hint is Any:
        return body
    try:
        found = from_jsonable(wire(hint), body)
    except (ValidationError, ValueError) as refused:
        errors = refused.errors() if isinstance(refused, ValidationError) else []
        why = str(errors[0]["msg"]) if errors else str(refused)
        raise Usage("option_invalid", option=option, value=str(body)[:80], reason=why) from None
    # What is an object to the verb stays one: only what it knows as a record of its own is made one.
    return body if isinstance(body, int | dict) and name != "dst" else found


def _missing(name: str) -> Usage:
    """Return the error of a required option that was not given."""
    called = CALLED.get(name, name).replace("_", "-")
    what = WORDS.get(name, called).rstrip(".")
    return Usage("option_missing", option=called, meaning=what, example=_EXAMPLES.get(name, called.upper()))


def confirm(question: str, said: Mapping[str, Any], *, yes: bool) -> None:
    """Ask for confirmation before something irreversible.

    Raises:
        Usage: not_confirmed.
    """
    asked = re.sub(r"\{(\w+)\}", lambda found: str(said.get(found[1], found[0])), question)
    if yes:
        return
    if is_for_program() or not sys.stdin.isatty():
        raise Usage("not_confirmed", question=asked)
    if not typer.confirm(visible(asked) + "?", err=True):
        raise Usage("not_confirmed.answered")


def _sentence(text: str) -> str:
    """Return a docstring's text as help: with a capital letter, a full stop, and the command line's word for None."""
    text = re.sub(r"\bNone\b", NOTHING, text)
    return text if not text else f"{text[0].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")
