"""Show that prose commits changed prose only: compare syntax trees without docstrings before and after each of them.

``python -m tests.same_code`` checks each commit with a subject beginning with "Prose:"; ``python -m tests.same_code REV``
compares the working tree with REV instead. Comments are no part of a syntax tree. The exit code is 1 if code differs.
"""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "Prose:"


def same_code(before: str, after: str) -> bool:
    """Whether two sources have the same syntax tree, apart from docstrings and positions."""
    return _bare(before) == _bare(after)


def _bare(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
            if not node.body and not isinstance(node, ast.Module):
                node.body = [ast.Pass()]
    return ast.dump(tree)


def differing_files(before: str, after: str | None) -> list[str]:
    """Paths of Python files with code that differs between two revisions; ``after`` None stands for the working tree.

    A file that exists on one side only differs, too.
    """
    revisions = [before] if after is None else [before, after]
    names = git("diff", "--name-only", "--no-renames", *revisions, "--", "*.py").splitlines()
    return [name for name in names if not same_code(_text(before, name), _text(after, name))]


def _text(revision: str | None, name: str) -> str:
    """Source of a file at a revision; of a file that is not there, a statement that equals no source."""
    if revision is None:
        path = ROOT / name
        return path.read_text() if path.exists() else "missing"
    found = subprocess.run(["git", "show", f"{revision}:{name}"], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout if found.returncode == 0 else "missing"


def prose_commits(newest: int = -1) -> list[str]:
    """Hashes of the newest commits with a subject that begins with ``PREFIX``, without merges; -1 for all."""
    return git("log", "--no-merges", "--format=%H", f"--grep=^{PREFIX}", f"--max-count={newest}").split()


def git(*arguments: str) -> str:
    """Output of a git command in this checkout.

    Raises:
        subprocess.CalledProcessError: git refused, for instance because this is no checkout.
    """
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main(arguments: list[str]) -> int:
    """Check one range or all prose commits, print each file that differs, and return the exit code."""
    wrong = 0
    ranges = [(arguments[0], None)] if arguments else [(f"{each}^", each) for each in prose_commits()]
    for before, after in ranges:
        for name in differing_files(before, after):
            print(f"{after or 'working tree'}: code differs in {name}")
            wrong += 1
    print(f"{len(ranges)} compared, {wrong} files differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
