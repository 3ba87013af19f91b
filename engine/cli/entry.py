"""Every verb on one Typer application, and the boundary where exceptions become exit codes."""

import os
import sys

import typer

from lodger.engine.cli import action, config, db, demo, doctor, schedule, script, tenant, up, version
from lodger.engine.cli import exec as exec_verb
from lodger.engine.cli import next as next_verb
from lodger.engine.cli.failure import tell

app = typer.Typer(
    name="lodger",
    help="Runs strangers' code on time, inside walls.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _everywhere(
    version_asked: bool = typer.Option(
        False, "--version", "-V", help="Show the version.", is_eager=True, callback=version.show
    ),
) -> None:
    """Runs strangers' code on time, inside walls."""


app.command("demo")(demo.demo)
app.command("up")(up.up)
app.command("exec")(exec_verb.execute)
app.command("next")(next_verb.next_slots)
app.command("doctor")(doctor.doctor)
app.command("version")(version.version)
for verb in (tenant, script, schedule, action, db, config):
    app.add_typer(verb.app)


def run(arguments: list[str]) -> int:
    """Carry out one command line; give the exit code."""
    try:
        app(args=arguments, prog_name="lodger")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away; the interpreter would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the outermost boundary: every fault is told in words
        return tell(error, as_json="--json" in arguments)
    return 0
