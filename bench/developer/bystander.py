"""A server that does next to nothing, in a process of its own: an attack on it slows others only through the shared processor.

Answers each request 200 after its body, 413 where the body is longer than Lodger takes, 431 for endless headers; says its port.
"""

import asyncio
import sys

#: As Lodger's: longest headers and longest JSON body, bytes.
HEADER_BYTES, BODY_BYTES = 32 * 1024, 4 * 1024 * 1024
_ANSWER = b'{"items": [' + b",".join([b'{"name": "s", "rules": ["every 1h"]}'] * 10) + b"]}"


def answered(status: bytes, *headers: bytes) -> bytes:
    """Return the bytes of one answer."""
    lines = [b"HTTP/1.1 " + status, b"Content-Type: application/json", b"Content-Length: %d" % len(_ANSWER), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + _ANSWER


OK = answered(b"200 OK")
LONG_HEADERS = answered(b"431 Request Header Fields Too Large", b"Connection: close")
LONG_BODY = answered(b"413 Content Too Large", b"Connection: close")


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one connection until it ends."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            _, declared, rest = head.partition(b"content-length:")
            left = int(rest.partition(b"\r\n")[0]) if declared else 0
            if b"transfer-encoding:" in head:
                left = 1 << 62
            if declared and left > BODY_BYTES:
                writer.write(LONG_BODY)
                break
            taken = 0
            while left and taken <= BODY_BYTES:
                piece = await reader.read(min(left, 65536))
                if not piece:
                    return
                left, taken = left - len(piece), taken + len(piece)
            if left:
                writer.write(LONG_BODY)
                break
            writer.write(OK)
            await writer.drain()
    except asyncio.LimitOverrunError:
        writer.write(LONG_HEADERS)
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main() -> None:
    """Serve until ended."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=HEADER_BYTES, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
