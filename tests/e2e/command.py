"""The real command line, in a process of its own."""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def bare() -> dict[str, str]:
    """Return the environment of a command."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "HOME", "XDG_CACHE_HOME", "LODGER_CHECK_SCRIPTS")
        if name in os.environ
    }
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "COLUMNS": "120"}


def lodger(*arguments: str | Path, stdin: str | bytes = b"", cwd: Path | None = None, **env: str) -> Said:
    """Run ``lodger`` with these arguments; ``env`` is added to a bare environment."""
    done = subprocess.run(
        [sys.executable, "-m", "lodger.engine.cli", *map(str, arguments)],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        cwd=cwd,
        env=bare() | env,
        timeout=250,
        check=False,
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def inside(*arguments: str | Path, stdin: str | bytes = b"", **env: str) -> Said:
    """Carry out a command line as :func:`lodger` does, in this process: for tests that need many of them."""
    from lodger.engine.cli.entry import run

    before, given, wanted = dict(os.environ), sys.stdin, bare() | env
    out, err = io.StringIO(), io.StringIO()
    os.environ.clear()
    os.environ.update(wanted)
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run([str(each) for each in arguments])
    finally:
        sys.stdin = given
        os.environ.clear()
        os.environ.update(before)
    return Said(code, out.getvalue(), err.getvalue())
