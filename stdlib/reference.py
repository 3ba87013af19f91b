"""Generator of the reference of host calls: ``python -m lodger.stdlib.reference``."""

from lodger.stdlib.calls import CALLS, EFFECTS_PER_CALL, HostCall

_HEAD = f"""# Host calls

The calls that a script's use of `db`, `kv`, `mail` and other APIs sends to the engine. This page is generated from the table against which
the engine checks every call (`stdlib/calls.py`); other calls are refused. The API for scripts is declared in `stdlib/types`.

*Grant*: the grant that the run needs; `db` stands for `sets` or `collections`, depending on the set. *Counts as*: the budgets that a
call uses. A call that only writes the journal is an *effect*: it does not count as a host call (limit of an attempt: 200);
{EFFECTS_PER_CALL} times as many effects are allowed. A call that only *computes* counts with the effects.
"""


def reference() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD]
    group = ""
    for call in CALLS.values():
        kind = call.name.partition(".")[0]
        if kind != group:
            group = kind
            parts.append(f"## {kind}\n")
        parts.append(_describe(call))
    return "\n".join(parts)


def _describe(call: HostCall) -> str:
    arguments = ", ".join(
        f"{name}{'?' if argument.optional else ''}: {argument.type}"
        for name, argument in call.arguments.items()
        if name != "line"
    )
    facts = [f"grant `{call.grant}`" if call.grant else "no grant"]
    if call.counts:
        facts.append("counts as " + ", ".join(call.counts))
    facts.append("an effect" if call.effect else "computes" if call.computes else "a host call")
    return f"### {call.name}\n\n`{call.name}({arguments})` → `{call.result}`: {'; '.join(facts)}.\n\n{call.help}\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(reference())
