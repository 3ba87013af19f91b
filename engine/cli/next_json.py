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
    from lodger.engine.core.clock import SystemClock, from_us
    from lodger.engine.recurrence.query import answer

    try:
        body = answer(request, now=from_us(SystemClock().now_us()))
    except Exception:  # noqa: BLE001 - the whole command line tells every fault in words
        return None
    try:
        try:
            sys.stdout.write(_plain_json(body) + "\n")
        except TypeError:
            from lodger.engine.cli.json_line import write_json

            write_json(body)
        sys.stdout.flush()
    except OSError as refused:
        from lodger.engine.cli.entry import unwritten

        return unwritten(refused)
    return 1 if "error" in body else 0


def _plain_json(body: object) -> str:
    """JSON of an answer that is made of plain words alone; importing ``json`` costs a third of what starting Python does.

    Raises:
        TypeError: something in it is for ``json`` to write.
    """
    if isinstance(body, dict):
        return "{" + ", ".join(f"{_plain_json(name)}: {_plain_json(value)}" for name, value in body.items()) + "}"
    if isinstance(body, list):
        return "[" + ", ".join(_plain_json(item) for item in body) + "]"
    if body is None or isinstance(body, bool):
        return {None: "null", True: "true", False: "false"}[body]
    if isinstance(body, str) and body.isascii() and body.isprintable() and not {'"', "\\"} & {*body}:
        return f'"{body}"'
    raise TypeError(f"{type(body).__name__} is not plain")
