"""``lodger next RULE --json`` as programs ask it, thousands of times: the same answer, without reading the option parser."""

import sys

_TEXTS = {"--kind": "kind", "--tz": "tz", "--dtstart": "dtstart", "--after": "after"}
_FLAGS = {"--inclusive": "inclusive", "--previous": "previous"}


def quick(arguments: list[str]) -> int | None:
    """Answer one question about one rule.

    Returns:
        The exit code; None, with nothing written, when the command line holds anything else than what is plain here.
    """
    request: dict[str, str | bool] = {}
    rest = iter(arguments)
    for word in rest:
        name = _TEXTS.get(word)
        if name is not None:
            value = next(rest, None)
            if value is None or value.startswith("-"):
                return None
            request[name] = value
        elif word in _FLAGS:
            request[_FLAGS[word]] = True
        elif word.startswith("-"):
            if word != "--json":
                return None
        elif "rule" in request:
            return None
        else:
            request["rule"] = word
    if "rule" not in request or "--json" not in arguments:
        return None
    from lodger.engine.cli.json_line import write_json
    from lodger.engine.clock import SystemClock, from_us
    from lodger.engine.recurrence.query import answer

    try:
        body = answer(request, now=from_us(SystemClock().now_us()))
    except Exception:  # noqa: BLE001 - the whole command line tells every fault in words
        return None
    try:
        write_json(body)
        sys.stdout.flush()
    except OSError as refused:
        from lodger.engine.cli.entry import unwritten

        return unwritten(refused)
    return 1 if "error" in body else 0
