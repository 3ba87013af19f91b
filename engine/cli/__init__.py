"""The command line, thin over the engine's own interface: commands from the table of operations, or by hand in ``commands``.

It must never know SQL or time. Commands import what they need when they run: ``lodger --version`` opens no database.
"""

import gc
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit: 0 success, 1 the command failed, 2 wrong usage."""
    # Imported code stays until the command ends: looking through it for garbage was half of a small command's CPU time.
    gc.set_threshold(20_000, 10, 10)
    try:
        from lodger.engine.cli.entry import run
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in {"typer", "click"}:
            raise
        sys.stderr.write(
            f"error: the command line needs {missing.name}  [extra_missing]\n"
            "  why: Lodger is installed without its extra cli\n"
            "  fix: pip install 'lodger[cli]'\n"
        )
        sys.exit(2)
    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)
