"""The host side of ``fetch``: checked at the call, sent for real on the loopback, handed over in pieces, kept for a repetition."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.egress.peer import Asked, Peer, answer
from tests.unit.capabilities.requesting import RequestBench, opened_bench

from lodger.engine.core import strict_json
from lodger.engine.core.access.grants import parse
from lodger.engine.node.executors.attempt import Attempt
from lodger.sandbox.job import Reply


@pytest.fixture
def bench() -> Iterator[RequestBench]:
    with opened_bench(Peer()) as made:
        yield made


def fetch_arguments(url: str, **more: Any) -> dict[str, Any]:
    """Return the arguments of a request by a script."""
    return {"id": 1, "method": "GET", "url": url, "headers": []} | more


def body_or_code(reply: Reply) -> Any:
    """Return the body of a reply, or the code of its error."""
    body = json.loads(reply.json)
    return body if reply.ok else body["code"]


def ask(attempt: Attempt, name: str, **arguments: Any) -> Any:
    return body_or_code(asyncio.run(attempt.call(name, json.dumps(arguments))))


@pytest.mark.parametrize(
    "body",
    [
        b"x" * 1_500_000,
        "ä€😀".encode() * 150_000,
        bytes(range(256)) * 4000,
        b"\xef\xbb\xbfmark",
        b"\0" * 300_000,
        b"",
        b"\xff",
    ],
)
def test_a_body_crosses_whole_in_pieces_that_fit(bench: RequestBench, body: bytes) -> None:
    import base64

    bench.peer.paths["/"] = answer(body)
    attempt = bench.attempt()
    reported = ask(attempt, "http.fetch", **fetch_arguments(bench.peer.url()))
    whole = b""
    while True:
        assert len(strict_json.dump(reported).encode()) < 1024 * 1024
        whole += reported["text"].encode() if "text" in reported else base64.b64decode(reported["bytes"])
        if reported["next"] >= len(body):
            break
        reported = ask(attempt, "http.more", id=1, **{"from": reported["next"]})
    assert whole == body
    assert attempt.fetch_state.bodies == {}, "what was handed over is let go"
    assert ask(attempt, "http.more", id=1, **{"from": 0}) == "bad_request"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"method": "TRACE"}, "bad_request"), ({"method": "get"}, "bad_request"), ({"method": "GET\r\nX: y"}, "bad_request"),
        ({"headers": [["Host", "x"]]}, "bad_header"), ({"headers": [["X", "a\r\nb"]]}, "bad_header"),
        ({"headers": {"a": "b"}}, "bad_request"), ({"headers": [["a"]]}, "bad_request"), ({"headers": [["a", 1]]}, "bad_request"),
        ({"body": "x"}, "bad_request"), ({"id": -1}, "bad_request"), ({"id": 1.5}, "bad_request"), ({"id": True}, "bad_request"),
        ({"redirect": "maybe"}, "bad_request"), ({"url": "x" * 9000}, "bad_request"), ({"url": 7}, "bad_request"),
        ({"method": "POST", "body": {"$bytes": "!"}}, "bad_request"), ({"method": "POST", "body": {"a": 1}}, "bad_request"),
        ({"method": "POST", "body": "x" * 600_000}, "bad_request"), ({"timeout": 1}, "bad_request"),
    ],
)  # fmt: skip
def test_requests_that_are_none(bench: RequestBench, more: dict[str, Any], code: str) -> None:
    assert ask(bench.attempt(), "http.fetch", **fetch_arguments(bench.peer.url()) | more) == code
    assert bench.peer.connections == 0


async def test_six_at_once_and_twenty_in_all(bench: RequestBench) -> None:
    async def slowly(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
        while bench.peer.max_open < 6:  # noqa: ASYNC110 - the peer counts and sends no event
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)  # for a seventh
        writer.write(answer(b"done"))
        await writer.drain()

    bench.peer.paths["/"] = slowly
    attempt = bench.attempt()

    calls = [
        attempt.call("http.fetch", json.dumps(fetch_arguments(bench.peer.url(), id=number))) for number in range(25)
    ]
    reported = [body_or_code(reply) for reply in await asyncio.gather(*calls)]
    assert [each for each in reported if isinstance(each, str)] == ["budget_exceeded"] * 5
    assert len(bench.peer.asked) == 20
    assert bench.peer.max_open == 6


def test_bytes_are_counted_and_bounded(bench: RequestBench) -> None:
    bench.peer.paths["/"] = answer(b"x" * 1000)
    attempt = bench.attempt(budgets={"fetch_bytes": 2500})
    reported = [ask(attempt, "http.fetch", **fetch_arguments(bench.peer.url(), id=number)) for number in range(4)]
    said = [each if isinstance(each, str) else each["status"] for each in reported]
    assert said == [200, 200, "response_too_large", "budget_exceeded"]
    assert attempt.counters.used["fetch_bytes"] > 3000, "what came of an answer that was broken off counts too"
    assert len(bench.peer.asked) == 3


def test_one_key_for_each_distinct_call_of_a_step_and_none_for_reading(bench: RequestBench) -> None:
    post = {"method": "POST", "body": "a"}
    calls = [
        post,
        post,
        post | {"body": "b"},
        {"method": "DELETE"},
        {},
        post | {"headers": [["Idempotency-Key", "mine"]]},
    ]

    def keys(attempt: Attempt) -> list[str | None]:
        before = len(bench.peer.asked)
        for number, more in enumerate(calls):
            ask(attempt, "http.fetch", **fetch_arguments(bench.peer.url(), id=number) | more)
        return [each.headers.get("idempotency-key") for each in bench.peer.asked[before:]]

    first, again, other = keys(bench.attempt()), keys(bench.attempt()), keys(bench.attempt(tenant="two"))
    assert first == again, "the same calls of the same step have the same keys"
    assert first[4:] == [None, "mine"]
    assert len({key for key in first[:4] if key}) == 4
    assert not set(first[:4]) & set(other[:4])


def test_a_repeated_run_is_given_the_answers_of_the_run_before(bench: RequestBench) -> None:
    counted = iter(range(100))

    async def counting(_asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(f"{next(counted)}".encode()))
        await writer.drain()

    bench.peer.paths["/"] = counting
    post = fetch_arguments(bench.peer.url(), method="POST", body="a")
    before = bench.attempt()
    assert [ask(before, "http.fetch", **post | {"id": number})["text"] for number in (1, 2)] == ["0", "1"]
    kept = {each.key: each.answer for each in before.fetch_state.fetched}
    after = bench.attempt(kept=kept)
    assert [ask(after, "http.fetch", **post | {"id": number})["text"] for number in (1, 2, 3)] == ["0", "1", "2"]
    assert ask(after, "http.fetch", **post | {"id": 4, "body": "new"})["text"] == "3"
    assert len(bench.peer.asked) == 4
    assert after.fetch_state.sent == 2


async def under_way(attempt: Attempt) -> None:
    """Wait until the first request has a task."""
    for _ in range(100):
        await asyncio.sleep(0)
        if attempt.fetch_state.running:
            return
    raise AssertionError("nothing is under way")


def test_without_a_way_out_nothing_is_asked(bench: RequestBench) -> None:
    attempt = bench.shop.attempt(claim={"grants": parse(["fetch:*"])})
    assert ask(attempt, "http.fetch", **fetch_arguments("https://api.example.com/")) == "fetch_refused"


def test_the_operators_log_holds_no_path_and_nothing_that_bends_it(
    bench: RequestBench, caplog: pytest.LogCaptureFixture
) -> None:
    """A URL may hold what only this tenant may know: a key that its script read, a signed link."""
    caplog.set_level("DEBUG")
    bench.peer.paths["/key-4eC39Hq"] = b"no HTTP"
    attempt = bench.attempt()
    urls = (
        bench.peer.url("/key-4eC39Hq"),
        "https://elsewhere.example/key-4eC39Hq?k=key-4eC39Hq",
        "https://ann:key-4eC39Hq@elsewhere.example/",
        "https://elsewhere.example/\nWARNING forged key-4eC39Hq",
        "https://[key-4eC39Hq/",
        "key-4eC39Hq",
    )
    reported = [ask(attempt, "http.fetch", **fetch_arguments(url, id=number)) for number, url in enumerate(urls)]
    assert reported == ["fetch_failed"] + ["fetch_refused"] * 5
    assert "tenant one" in caplog.text
    assert "key-4eC39Hq" not in caplog.text
    assert "\nWARNING forged" not in caplog.text


@pytest.mark.parametrize("way", ["aborted", "the run ends"])
async def test_what_came_of_an_answer_that_nobody_waited_for_counts(bench: RequestBench, way: str) -> None:
    async def half(_asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 300_000)
        await writer.drain()
        await reader.read()

    bench.peer.paths["/"] = half
    attempt = bench.attempt()

    calling = asyncio.ensure_future(attempt.call("http.fetch", json.dumps(fetch_arguments(bench.peer.url()))))
    await under_way(attempt)
    twice = await attempt.call("http.fetch", json.dumps(fetch_arguments(bench.peer.url())))
    assert body_or_code(twice) == "bad_request", "a request of this id is under way"
    while sum(request.moved.so_far for request in bench.requests) < 300_000:  # noqa: ASYNC110 - another thread counts and sends no event
        await asyncio.sleep(0.01)
    if way == "aborted":
        await attempt.call("http.abort", '{"id": 1}')
        assert body_or_code(await calling) == "aborted"
    else:
        attempt.fetch_state.count_abandoned()
        calling.cancel()
        await asyncio.wait([calling])

    assert attempt.fetch_state.running == {}
    assert 300_000 <= attempt.counters.used["fetch_bytes"] < 310_000
