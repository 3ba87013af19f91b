"""The command line, one module per verb, thin over the engine's own interface. It must never know SQL or time.

Verbs import what they need when they run: ``lodger --version`` and ``lodger next`` open no database.
"""

import gc
import os
import sys

__all__ = ["main"]


def main() -> None:
    """Carry out the command line and end the process: 0 done, 1 the thing asked for failed, 2 wrong usage."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from lodger.engine.core.version import VERSION

        sys.stdout.write(f"lodger {VERSION}\n")
        sys.exit(0)
    if arguments[:1] == ["next"] and "--json" in arguments:
        from lodger.engine.cli.next_json import quick

        # One short question: what it leaves behind ends with the process, so nothing is collected on the way,
        # and once all is written nothing is taken apart. Both would cost as much as the answer.
        gc.disable()
        code = quick(arguments[1:])
        if code is not None:
            os._exit(code)
        gc.enable()
    try:
        from lodger.engine.cli.entry import run
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in {"typer", "click"}:
            raise
        sys.stderr.write(
            f"error: the command line needs {missing.name}  [extra_missing]\n"
            "  why: the base of Lodger is installed without its command line\n"
            "  fix: pip install 'lodger[cli]'\n"
        )
        sys.exit(2)
    sys.exit(run(arguments))
