"""The command line, one module per verb, thin over the engine's own interface. It must never know SQL or time.

Verbs import what they need when they run: ``lodger --version`` and ``lodger next`` open no database.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Carry out the command line and end the process: 0 done, 1 the thing asked for failed, 2 wrong usage."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from lodger.engine.version import VERSION

        sys.stdout.write(f"lodger {VERSION}\n")
        sys.exit(0)
    if arguments[:1] == ["next"] and "--json" in arguments:
        from lodger.engine.cli.next_json import quick

        code = quick(arguments[1:])
        if code is not None:
            sys.exit(code)
    from lodger.engine.cli.entry import run

    sys.exit(run(arguments))
