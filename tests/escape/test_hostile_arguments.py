"""Hostile arguments from a compromised worker: every call answers or refuses quickly, and never raises."""

import json
import time
from collections.abc import Iterator

import pytest

from lodger.engine.core import strict_json
from lodger.engine.store.schema.metadata import metadata
from lodger.escape.cases.tenants.world import TenantHost, world
from lodger.sandbox.limits import Limits
from lodger.stdlib.calls import CALLS, HostCall

# Between many other tests the collector looks through their objects again and again, for seconds.
pytestmark = pytest.mark.usefixtures("uncollected")

LENGTH = 30_000
#: CPU seconds of the parent for one call: linear work takes hundredths, quadratic work ten seconds.
MAX_S = 2.0
#: Texts that are not JSON, or that no serializer writes.
RAW = {
    "an escaped quote for ever": '"' + '\\"' * LENGTH,
    "escapes for ever": '"' + "\\\\" * LENGTH + "\\",
    "quotes": '"' * LENGTH,
    "a key for ever": '{"a":"' + '\\"' * LENGTH,
    "keys for ever": '{"' + 'a":"\\' * (LENGTH // 5),
    "texts and no end": '["a",' * 60 + '"\\"' * LENGTH,
    "numbers for ever": "[" + "1e5" * LENGTH,
    "digits": '{"a":' + "9" * LENGTH + "}",
    "digits after a point": '{"a":0.' + "9" * LENGTH + "}",
    "an exponent": '{"a":1e' + "9" * LENGTH + "}",
    "minus": "-" * LENGTH,
    "white space": " " * LENGTH,
    "an empty list, often": "[" + "[]," * LENGTH + "[]]",
    "brackets": "[" * LENGTH,
    "commas": "[" + "," * LENGTH,
    "colons": '{"a"' + ":" * LENGTH,
    "escapes of halves": '{"a":"' + "\\ud800" * (LENGTH // 6) + '"}',
    "one key twice": '{"set":"things","set":"orders"}',
    "not a number": '{"a":NaN}',
    "endless": '{"a":Infinity}',
    "nothing": "",
    "null": "null",
    "a list": "[]",
    "text": '"db.find"',
    "too large": '{"a":1e400}',
    "nul": '{"a\\u0000":1}',
}
#: Values of each type for any argument; the long ones take quadratic parsers long.
VALUES: dict[str, object] = {
    "long": "a" * LENGTH,
    "dots": "a." * (LENGTH // 2),
    "colons": ":" * LENGTH,
    "handles": "{{secret:" * (LENGTH // 9),
    "names": "{{basic:" + "a" * LENGTH,
    "words": "=?a?q?" * (LENGTH // 6),
    "half a word": "=?" * (LENGTH // 2),
    "at": "a@" * (LENGTH // 2),
    "percent": "%2" * (LENGTH // 2),
    "wildcards": "%_" * (LENGTH // 2),
    "slashes": "https://" + "/../" * (LENGTH // 4),
    "hosts": "https://" + "a." * (LENGTH // 2) + "example.com/",
    "lines": "a\r\n" * (LENGTH // 3),
    "spaces": " " * LENGTH,
    "digits": "9" * 300_000,
    "marks": "\u0300" * 40_000,
    "signs": "\U0001f600" * 25_000,
    "nul": "a\0b",
    "base64": "A" * LENGTH,
    "integer": 10**39,
    "float": 1e308,
    "negative": -1,
    "true": True,
    "list": ["a" * 1000] * 100,
    "many": list(range(20_000)),
    "pairs": [["a", "b" * 1000]] * 100,
    "object": {f"k{number}": number for number in range(10_000)},
    "deep": json.loads("[" * 60 + "]" * 60),
    "deep object": json.loads('{"and":[' * 28 + "1" + "]}" * 28),
    "many alternatives": {"or": [{"id": number} for number in range(10_000)]},
    "instant": {"$instant": "9" * LENGTH},
    "bytes": {"$bytes": "=" * LENGTH},
    "tag": {"$object": {"$object": {"$instant": 1}}},
    "nothing": None,
}
#: For arguments that are no text of a script: their type is all that is read.
OF_ANY_TYPE = ("long", "integer", "float", "negative", "list", "deep", "nothing")
_PLAIN: dict[str, object] = {
    "name": "things", "id": "escape-0", "filter": {}, "order": [], "limit": 1, "cursor": None, "names": ["total"],
        "groups": [{"day": "modified"}],
    "values": {"text": "x"}, "rows": [{"text": "x"}], "text": "text", "key": "key", "value": 1, "number": 1, "flag": True,
    "addresses": ["a@example.com"], "pairs": [["a", "b"]], "line": "main.js:1", "base64": "YWJj",
}  # fmt: skip


def _texts(call: HostCall) -> Iterator[tuple[str, str]]:
    """Yield hostile texts for one call: each value for each argument with the others valid, and raw ones where nothing else is asked."""
    if call.name in {"db.find", "kv.get"}:  # one reader reads the arguments of all
        yield from RAW.items()
    right = {name: _PLAIN[argument.type] for name, argument in call.arguments.items()}
    for argument, declared in call.arguments.items():
        for name in OF_ANY_TYPE if declared.type in {"line", "flag", "number", "limit"} else VALUES:
            value = VALUES[name]
            yield f"{argument}: {name}", strict_json.dump({**right, argument: value})


@pytest.mark.parametrize("name", CALLS)
async def test_every_call_of_the_table(name: str) -> None:
    slow = []
    metadata.create_all(world().engine)

    for about, text in _texts(CALLS[name]):
        host = TenantHost(Limits(), budgets=dict.fromkeys(("queries", "rows_read", "rows_written", "mails"), 10**6))
        before = time.process_time()
        reply = await host.call(name, text)
        took = time.process_time() - before
        reported = json.loads(reply.json)
        assert reply.ok or reported["code"].isascii(), (about, reply)
        if took > MAX_S:
            slow.append((about, round(took, 2)))

    assert not slow


async def test_a_name_that_is_in_no_table() -> None:
    for name in ("", "db", "db.", "__init__", "db.find ", "DB.FIND", "db.__class__", "a" * 255):
        reply = await TenantHost(Limits()).call(name, "{}")
        assert not reply.ok
        assert json.loads(reply.json)["code"] == "unknown_method"
