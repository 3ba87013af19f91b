"""A server that answers with the request."""

import asyncio
import json

from tests.egress.peer import Asked, answer


async def echo(asked: Asked, _reader: object, writer: asyncio.StreamWriter) -> None:
    reported = {"line": asked.line, "headers": asked.headers, "body": asked.body.decode("latin-1")}
    writer.write(
        answer(json.dumps(reported).encode(), "200 OK", "Content-Type: application/json", "X-Two: a", "X-Two: b")
    )
    await writer.drain()
