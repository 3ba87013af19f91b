"""Where connections come in. The order is looked at, never the time: the loop is held while a crowd comes, and let go then."""

import asyncio
import errno
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.api.house import SETTINGS, received, serving

from lodger.engine.server import door, wire
from lodger.engine.server.kernel import Kernel
from lodger.engine.server.known import Known, digest
from lodger.engine.server.porter import A_TURN, Porter
from lodger.engine.server.server import Server
from lodger.engine.core.settings import Settings

CROWD = 300


class Place:
    """A server whose application writes down who asked in which order; ``/hold`` holds the whole event loop until it is let go."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.inside, self.go = threading.Event(), threading.Event()
        self.known = Known()
        for name in ("crowd", "neighbour"):
            self.known.note(digest([(b"authorization", name.encode())]), name)
        self.server: Server

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        if scope["path"] == "/hold":
            self.inside.set()
            assert self.go.wait(120)
        else:
            self.asked.append(scope["path"])
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})

    def connect(self, address: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), 60, (address, 0))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the event loop for the block."""
        with self.connect() as holder, self.held_by(holder):
            yield

    @contextmanager
    def held_by(self, holder: socket.socket) -> Iterator[None]:
        holder.sendall(b"GET /hold HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert self.inside.wait(60)
        try:
            yield
        finally:
            self.go.set()
        assert received(holder).endswith(b"ok")
        self.inside.clear()
        self.go.clear()

    def idle(self) -> None:
        """Return when the loop has gone round."""
        with self.connect() as one:
            one.sendall(asked("idle"))
            assert answered(one)


def asked(who: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET /{who} HTTP/1.1", "Host: a", f"Authorization: {who}", *headers, "", ""]).encode()


def answered(connection: socket.socket) -> bool:
    said = b""
    while not said.endswith(b"ok"):
        part = connection.recv(65536)
        if not part:
            return False
        said += part
    return said.startswith(b"HTTP/1.1 200")


@contextmanager
def placed(**settings: Any) -> Iterator[Place]:
    place = Place()
    with serving(place, Settings(**(SETTINGS | settings)), place.known) as server:
        place.server = server
        yield place


def first_come(porter: Porter, _name: str, act: Callable[[], None], _weight: int = 1) -> None:
    act()


def crowded(place: Place, *, kept: bool) -> int:
    """Let a crowd ask in one moment, and the neighbour after them; give how many of them were served before him.

    Args:
        kept: their connections are there before, and they ask again.
    """
    with ExitStack() as open_ones:
        everybody = [open_ones.enter_context(place.connect()) for _ in range(CROWD + 1)] if kept else []
        for each in everybody:
            each.sendall(asked("before"))
            assert answered(each)
        place.asked.clear()
        with place.held():
            if not kept:
                everybody = []
            for number in range(CROWD + 1):
                if not kept:
                    everybody.append(open_ones.enter_context(place.connect()))
                everybody[number].sendall(asked("neighbour" if number == CROWD else "crowd"))
        assert all(answered(each) for each in everybody)
    assert len(place.asked) == CROWD + 1
    return place.asked.index("/neighbour")


@pytest.mark.parametrize("kept", [False, True], ids=["new connections", "kept connections"])
def test_who_asks_seldom_is_served_before_a_crowd_that_came_before(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with placed() as place:
        turns_to_come = (CROWD + door.ACCEPTED) // door.ACCEPTED if not kept else 1
        assert crowded(place, kept=kept) <= (turns_to_come + 2) * A_TURN
        monkeypatch.setattr(Porter, "offer", first_come)
        assert crowded(place, kept=kept) >= CROWD // 2, "without the porter they are served as they came"


def test_strangers_of_one_address_wait_behind_those_of_another() -> None:
    with placed() as place, ExitStack() as open_ones:
        with place.held():
            everybody = [open_ones.enter_context(place.connect("127.0.0.2")) for _ in range(CROWD)]
            everybody.append(open_ones.enter_context(place.connect("127.0.0.3")))
            for number, each in enumerate(everybody):
                each.sendall(asked("last" if number == CROWD else "stranger"))
        assert all(answered(each) for each in everybody)
        assert place.asked.index("/last") <= 8 * A_TURN


@pytest.mark.parametrize("at", [1, 20, 40, 60, -1])
def test_headers_in_two_pieces_are_served(at: int) -> None:
    with placed() as place, place.connect() as one:
        said = asked("neighbour")
        one.sendall(said[:at])
        place.idle()
        one.sendall(said[at:])
        assert answered(one)
        one.sendall(said[:at])
        place.idle()
        one.sendall(said[at:])
        assert answered(one), "on a kept connection, too"


def heavy(number: int) -> list[str]:
    return [f"X-{each}: {'x' * 200}" for each in range(number)]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (asked("a", *heavy(120)), b"200"),
        (asked("a", *heavy(140)), b"400"),
        (b"GET /a HTTP/1.0\r\nAuthorization: crowd\r\n\r\n", b"200"),
        (b"GET /a HTTP/1.0\n\n", b"200"),
        (b"\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01", b"400"),
    ],
)
def test_a_crowd_of_odd_requests_is_answered_each_and_after_who_asks_seldom(said: bytes, status: bytes) -> None:
    with placed() as place, ExitStack() as open_ones:
        with place.held():
            crowd = [open_ones.enter_context(place.connect("127.0.0.2")) for _ in range(150)]
            for each in crowd:
                each.sendall(said)
            one = open_ones.enter_context(place.connect())
            one.sendall(asked("neighbour"))
        assert answered(one)
        assert place.asked.index("/neighbour") <= 8 * A_TURN
        for each in crowd:
            assert each.recv(65536).startswith(b"HTTP/1.1 " + status)


def test_requests_that_come_together_are_all_served_in_their_order() -> None:
    with placed() as place, place.connect() as one:
        one.sendall(asked("a") + asked("b") + asked("c", "Connection: close"))
        said = received(one)
        assert said.count(b"HTTP/1.1 200") == 3
        assert place.asked == ["/a", "/b", "/c"]


def test_who_leaves_before_its_turn_gives_its_place_back() -> None:
    with placed(api_connections=8) as place:
        for _ in range(3):
            with ExitStack() as open_ones:
                for said in (b"", b"GET", asked("crowd"), b"\r\n", b"\x16\x03"):
                    open_ones.enter_context(place.connect()).sendall(said)
        with ExitStack() as open_ones:
            # Those who are gone are seen to be: six of one address of eight.
            for _ in range(6):
                open_ones.enter_context(place.connect())
            with place.connect("127.0.0.2") as one:
                one.sendall(asked("neighbour"))
                assert answered(one)


def test_what_was_said_at_the_door_is_kept_no_longer_than_it_is_needed() -> None:
    """A connection that is kept open for hours would hold the headers of its first request."""
    with socket.socket() as own:
        guest, left = door.Guest(own, "127.0.0.1", lambda: left.append(1)), []
        guest.head.add(asked("crowd"))
        assert (guest.take(), guest.take()) == (asked("crowd"), b"")
        guest.leave()
        guest.leave()
        assert left == [1]


def test_a_process_without_descriptors_accepts_again_when_it_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "RETRY_S", 0.05)
    failed = threading.Event()
    real = Kernel.accept

    def accept(kernel: Kernel, listening: socket.socket) -> Any:
        if not failed.is_set():
            failed.set()
            raise OSError(errno.EMFILE, "Too many open files")
        return real(kernel, listening)

    monkeypatch.setattr(Kernel, "accept", accept)
    with placed() as place, place.connect() as one:
        one.sendall(asked("neighbour"))
        assert answered(one)
        assert failed.is_set()


def test_a_server_that_has_no_descriptor_to_listen_with_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async def scenario() -> None:
        place = Place()
        server = Server(place, Settings(**SETTINGS))
        with monkeypatch.context() as patched:
            patched.setattr(door.select, "epoll", exhausted)
            with pytest.raises(OSError, match="Too many open files"):
                await asyncio.wait_for(server.start(), 20)
        await server.start()
        await server.stop()

    asyncio.run(scenario())


def test_when_the_server_stops_who_waits_is_told_or_cut() -> None:
    with ExitStack() as open_ones, placed() as place:
        silent, half = (open_ones.enter_context(place.connect()) for _ in range(2))
        half.sendall(b"GET / HT")
        place.idle()
        with place.held():
            crowd = [open_ones.enter_context(place.connect()) for _ in range(CROWD)]
            for each in crowd:
                each.sendall(asked("crowd"))
        # The server is stopped at the end of the block, while most of them wait.
        open_ones.callback(lambda: [part for part in (silent, half) if received(part)] == [] or pytest.fail("not cut"))
        open_ones.callback(told, crowd)


def told(crowd: list[socket.socket]) -> None:
    said = [received(each) for each in crowd]
    wrong = [each for each in said if each and not each.startswith((b"HTTP/1.1 200", b"HTTP/1.1 503"))]
    assert not wrong


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(tmp_path: Path, authority: trustme.CA) -> dict[str, Any]:
    made = authority.issue_cert("127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(b"".join(each.bytes() for each in made.cert_chain_pems))
    made.private_key_pem.write_to_path(key)
    return {"tls_cert": cert, "tls_key": key}


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    made = ssl.create_default_context()
    authority.configure_trust(made)
    return made


def test_over_tls_who_asks_seldom_is_served_before_a_crowd(tls: dict[str, Any], authority: trustme.CA) -> None:
    """On connections that are there; new ones wait by their address."""
    context = trusting(authority)
    with placed(**tls) as place, ExitStack() as open_ones:
        everybody = []
        for _ in range(60):
            plain = open_ones.enter_context(place.connect())
            everybody.append(open_ones.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1")))
            everybody[-1].sendall(asked("before"))
            assert answered(everybody[-1])
        place.asked.clear()
        with place.held_by(everybody.pop()):
            for number, each in enumerate(everybody):
                each.sendall(asked("neighbour" if number == len(everybody) - 1 else "crowd"))
        assert all(answered(each) for each in everybody)
        assert place.asked.index("/neighbour") <= 3 * A_TURN


def test_handshakes_that_are_not_finished_end_and_hold_no_place(
    tls: dict[str, Any], authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "HEADERS_S", 1.0)
    with placed(**tls, api_connections=8) as place, ExitStack() as open_ones:
        begun = [open_ones.enter_context(place.connect()) for _ in range(6)]
        for number, each in enumerate(begun):
            if number % 3:
                each.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[: 4 * number])
        assert all(b"HTTP" not in received(each) for each in begun), "each is cut"
        context = trusting(authority)
        for _ in range(6):
            plain = open_ones.enter_context(place.connect())
            one = open_ones.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1"))
            one.sendall(asked("neighbour"))
            assert answered(one)
