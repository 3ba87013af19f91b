"""Classes 18 and 20: endless conversions of values to text, and sources that are costly to compile.

Converting the result runs the tenant's code after its end; compiling happens before its start. Both run in the worker, under the same time
limits.
"""

from lodger.escape.attack_files import cases_of
from lodger.escape.case import Case, cases
from lodger.escape.evidence import Escaped, survives
from lodger.sandbox.outcome import Outcome


def _never_ran(ran: bool) -> str:
    """Raise Escaped if a script ran that should have been refused before any worker saw it."""
    if ran:
        raise Escaped("it was compiled and run")
    return "no worker saw it"


#: Sources that exhaust the parser's stack.
NESTS = (
    ("parens", "a hundred thousand parentheses", "export default () => " + "(" * 100_000 + "1" + ")" * 100_000),
    ("brackets", "a module of nested arrays", "export default () => " + "[" * 100_000 + "]" * 100_000),
    ("templates", "a module of nested templates", "export default () => " + "`${" * 45_000 + "1" + "}`" * 45_000),
    ("arrow-chain", "sixty thousand nested arrows", "export default () => " + "()=>" * 60_000 + "1"),
    ("else-if", "sixteen thousand branches", "export default () => { " + "if (0) {} else " * 16_000 + "{} return 1; }"),
    (
        "await-chain",
        "awaits of awaits",
        "export default async () => " + "await(" * 32_000 + "1" + ")" * 32_000,
    ),
    (
        "labels",
        "thirty thousand labels",
        "export default () => { " + "".join(f"l{i}:" for i in range(30_000)) + "; return 1; }",
    ),
    ("not-a-module", "a snippet that parses in no way", "return ((((" + "[" * 60_000),
    ("signs", "a hundred and twenty thousand signs before a number", "export default () => " + "- " * 120_000 + "1"),
    ("conditions", "nested conditions", "export default () => " + "1?" * 40_000 + "1" + ":0" * 40_000),
    ("objects", "a module of nested objects", "export default () => (" + "{a:" * 40_000 + "1" + "}" * 40_000 + ")"),
    ("blocks", "nested blocks", "export default () => {" + "{" * 100_000 + "}" * 100_000 + "}"),
)
_COMPILED = (Outcome.STACK_LIMIT, Outcome.COMPILE_ERROR, Outcome.SCRIPT_ERROR)

CASES = [
    *cases_of(__file__),
    *cases(
        "B20",
        "guest_stack",
        NESTS,
        expect=_COMPILED,
        seen=survives,
        story="A small source is nested deeply: the parser uses the guest's stack.",
        limits={"cpu_ms": 1000, "wall_ms": 5000},
    ),
    Case(
        "B20-too-large",
        "source_bytes",
        "a source one byte too large",
        "export default () => 1;" + " " * 65_514,
        (Outcome.SOURCE_TOO_LARGE,),
        seen=lambda trial: _never_ran(trial.report.outcome is Outcome.OK),
        limits={"source_bytes": 65_536},
        story="A source that is too large is refused before it reaches a worker.",
    ),
]
