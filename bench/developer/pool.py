"""The pool of this checkout beside that of another, in turns, so that both meet the same noise.

``python bench/developer/pool.py TREE [quickjs|quickjs-native|wasm] [--seconds S] [--rounds N]``: medians of the other,
of this one, and this over the other. What is measured: ``lodger bench attempts``. Page faults do not depend on what else the machine does.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: This checkout's way of measuring, with the other one's sandbox.
MEASURE = """
import json, runpy, sys
bench = runpy.run_path(sys.argv[1])
bench["measure"](sys.argv[2], float(sys.argv[3]), lambda row: print(json.dumps(row.as_dict())))
"""


def rows(tree: Path, runtime: str, seconds: float) -> list[dict[str, Any]]:
    script = str(ROOT / "bench" / "command" / "attempts.py")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, script, runtime, str(seconds)],
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("runtime", nargs="?", default="quickjs", choices=("quickjs", "quickjs-native", "wasm"))
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    trees = (arguments.tree.resolve(), ROOT)
    found = [[rows(tree, arguments.runtime, arguments.seconds) for tree in trees] for _ in range(arguments.rounds)]
    for number, row in enumerate(found[0][1]):
        print(row["row"])
        for figure in list(row)[3:]:
            old, new = (median(turn[which][number][figure] for turn in found) for which in (0, 1))
            print(f"  {figure:15} {old:10.3f} {new:10.3f}   {new / old if old else 0:5.2f}")


if __name__ == "__main__":
    main()
