"""A PostgreSQL server with a standby."""

import socket
from typing import Any

import psycopg
from tests.databases.server import Server


def ask(server: Server, *statements: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall()


def free_ports() -> list[int]:
    with socket.socket() as one, socket.socket() as two:
        for each in (one, two):
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in (one, two)]
