"""Generator of the reference of host calls: ``python -m lodger.stdlib.reference``."""

from lodger.stdlib.calls import CALLS, EFFECTS_PER_CALL, HostCall

_HEAD = f"""# Host calls

What crosses the wall when a script uses `db`, `kv`, `mail` and the rest. This page is made from the one table by which the engine checks
every call (`stdlib/calls.py`); whatever is not in it is refused. How scripts say it is in the types beside it (`stdlib/types`).

*Grant*: what the run has to hold; `db` stands for `sets` or `collections`, by the set that the call names. *Counts as*: the budgets that a
call draws on. A call that only writes the journal is an *effect*: it is no host call (of which an attempt has 200);
{EFFECTS_PER_CALL} times as many may be made.
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
    facts.append("an effect" if call.effect else "a host call")
    return f"### {call.name}\n\n`{call.name}({arguments})` → `{call.result}`: {'; '.join(facts)}.\n\n{call.help}\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(reference())
