"""The Typer application: all commands, and the conversion of exceptions to exit codes."""

import contextlib
import io
import logging
import os
import sys
from importlib import import_module
from typing import Any

import typer

from lodger.engine.cli import place
from lodger.engine.core.errors import Explained, Usage
from lodger.engine.core.plain_text import one_line
from lodger.engine.core.version import VERSION
from lodger.engine.output import result_output
from lodger.engine.output.failure import TRACEBACK, tell
from lodger.engine.output.result_output import Group, say

app = Group(
    name="lodger",
    help="Run untrusted scripts on a schedule, in a sandbox.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    """Print the version and exit, if ``--version`` was given."""
    if asked:
        say(f"lodger {VERSION}")
        raise typer.Exit


@app.callback()
def _everywhere(
    server: str | None = typer.Option(
        None,
        "--server",
        metavar="URL",
        help="Address of a server to use instead of a local ledger. [env: LODGER_SERVER]",
    ),
    profile: str | None = typer.Option(
        None,
        "--profile",
        metavar="NAME",
        help="Name of a profile (server or ledger) to use. [env: LODGER_PROFILE_NAME]",
    ),
    tz: str | None = typer.Option(
        None,
        "--tz",
        metavar="ZONE",
        help="Time zone of the times that are shown, such as Europe/Berlin; before commands with a --tz of their own. Default: UTC.",
    ),
    version_asked: bool = typer.Option(
        False, "--version", "-V", help="Show the version.", is_eager=True, callback=_show_version
    ),
) -> None:
    """Run untrusted scripts on a schedule, in a sandbox."""


#: Commands by name: module and function.
COMMANDS = {
    "demo": ("commands.demo", "demo"),
    "up": ("up", "up"),
    "exec": ("commands.exec", "execute"),
    "next": ("next", "next_slots"),
    "init": ("commands.init", "init"),
    "bundle": ("commands.bundle", "bundle"),
    "dev": ("commands.dev", "dev"),
    "check": ("commands.check", "check"),
    "test": ("commands.test", "run"),
    "deploy": ("commands.deploy", "deploy"),
    "pull": ("commands.pull", "pull"),
    "doctor": ("commands.doctor", "doctor"),
    "escape": ("escape", "escape"),
    "errors": ("commands.errors", "errors"),
    "mcp": ("assistants.command", "mcp"),
    "version": ("commands.doctor", "version"),
}
#: Groups of commands that are all made by hand: name and module.
GROUPS = {
    "bench": "lodger.bench.command",
    "db": "lodger.engine.cli.commands.db",
    "config": "lodger.engine.cli.commands.config",
}
#: The main line's nouns and the help of their groups; the commands come from the table of operations, which a list of groups need not load.
NOUNS = {
    "tenant": "Manage tenants: customers of the platform, with their own scripts and data.",
    "grant": "Manage grants: permissions of a tenant's scripts.",
    "collection": "List collections of documents, and manage their indexes.",
    "secret": "Manage secrets, which scripts send in headers of requests.",
    "script": "Manage scripts and their versions.",
    "schedule": "Manage schedules: when a script runs, and under which policies.",
    "action": "Manage actions: past, running and waiting runs of scripts.",
    "token": "Manage access tokens of the HTTP API.",
    "audit": "Read the audit log: actor, time, channel and reason of every change.",
    "node": "List nodes: engine processes that run actions.",
    "metrics": "Read the engine's metrics.",
}
#: Those with a module of their own.
SPECIAL = {"tenant", "grant", "secret", "script", "action", "token", "audit"}
_COMPLETING = "_LODGER_COMPLETE"


def all_nouns() -> dict[str, str]:
    """Return the nouns of the main line and of the wings, with the help of their groups."""
    from lodger.engine.features import load
    from lodger.engine.output import groups

    load("commands")
    return NOUNS | groups.HELP


def add_commands(arguments: list[str]) -> None:
    """Add the command group that the command line names with its commands, other groups by name only; everything for completion."""
    app.registered_commands.clear()
    app.registered_groups.clear()
    if arguments[:1] in (["--version"], ["-V"]):
        return
    word = next((each for each in arguments if not each.startswith("-")), None)
    everything = _COMPLETING in os.environ
    nouns = NOUNS if word in {*COMMANDS, *GROUPS, *NOUNS} and not everything else all_nouns()
    unknown = word not in {*COMMANDS, *GROUPS, *nouns}
    for name, (module, function) in COMMANDS.items():
        if everything or unknown or name == word:
            app.command(name, as_json=name != "mcp")(getattr(_module(module), function))
    for name, module in GROUPS.items():
        if everything or unknown or name == word:
            app.add_typer(import_module(module).app)
    for noun, what in nouns.items():
        if everything or noun == word:
            from lodger.engine.cli.operations import group

            special = _module(f"commands.{noun}").app if noun in SPECIAL else None
            app.add_typer(group(noun, special), name=noun, help=what)
        else:
            app.add_typer(typer.Typer(name=noun, help=what), name=noun)


def _module(name: str) -> Any:
    """Import the module of a command by its name."""
    return import_module(f"lodger.engine.cli.{name}")


def run(arguments: list[str]) -> int:
    """Run one command line; return the exit code."""
    _prepare_streams()
    as_json = "--json" in arguments
    try:
        try:
            arguments = place.taken(arguments)
            result_output.show_zone(place.zone_said())
            add_commands(arguments)
            ended = app(args=arguments, prog_name="lodger", standalone_mode=not as_json)
        finally:
            sys.stdout.flush()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError as gone:
        return unwritten(gone)
    except Exception as error:  # noqa: BLE001 - the outermost boundary: every fault is told in words
        if isinstance(error, Explained) and place.given():
            error.fix = place.to_copy(error.fix, all_nouns())
        # An option parser's error is one of Lodger's, so that programs get JSON for it too.
        words = Usage("usage", problem=error.format_message()) if hasattr(error, "format_message") else error
        return _report(words, as_json=as_json)
    return ended if isinstance(ended, int) else 0


def _report(error: Exception, *, as_json: bool) -> int:
    """Print an error; return the exit code."""
    try:
        code = tell(error, as_json=as_json)
        sys.stdout.flush()
    except OSError as refused:
        return unwritten(refused)
    return code


def unwritten(refused: OSError) -> int:
    """Report on the other stream that the output cannot be written, such as on a full disk; return the exit code.

    Nothing is reported if the reader closed the pipe. Without this the interpreter would complain again when it flushes at exit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(refused, BrokenPipeError):
        with contextlib.suppress(OSError):
            tell(refused, as_json=False)
    return 1


def _prepare_streams() -> None:
    """Open /dev/null for closed standard streams, else the ledger's file could get their descriptor and the output; log to stderr."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
    for stream in (sys.stdout, sys.stderr):
        # Output may hold text of scripts: a character that the terminal's encoding lacks is shown escaped. Readers of a pipe see each
        # line at once.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    _quiet()


def _quiet() -> None:
    """Send log records to stderr, one line each; tracebacks only if LODGER_TRACEBACK asks for them."""
    noted = logging.getLogger("lodger")
    if not noted.handlers:
        handler = logging.StreamHandler()
        if not os.environ.get(TRACEBACK):
            handler.setFormatter(_Line())
        noted.addHandler(handler)
        noted.propagate = False


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return one_line(record.getMessage())
