"""Large bodies are looked at elsewhere: with the same answers, by a process that holds nothing and that may be lost."""

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lodger.engine.server.sieve import VALUES, Sieve, looked
from lodger.sandbox.prescan import JsonRefused

MOST = 1_000_000
BODIES = [
    b"{}",
    b'{"a": [1, 2.5, "\xc3\xa9"]}',
    b"[1]",
    b"",
    b"{",
    b"[" * 400_000 + b"]" * 400_000,
    b'{"a": [' + b"1," * VALUES + b"1]}",
    b'{"a": [' + b"1," * (VALUES // 2) + b"1]}",
    b'{"a": 1, "a": 2}',
    b'{"a": NaN}',
    b'{"a": 1e999}',
    b'{"a": "\xff"}',
    b'{"a": "' + b"x" * MOST + b'"}',
    b"\x00" * 100_000,
    b"\n" * 100_000 + b"{}",
]


@pytest.fixture
def sieve() -> Iterator[Sieve]:
    made = Sieve()
    yield made
    made.close()
    made.close()


def told(look: object, body: bytes) -> object:
    try:
        return look(body, MOST)  # type: ignore[operator]  # one of two functions
    except JsonRefused as refused:
        return refused.code, str(refused)


def test_it_answers_as_the_same_process_would(sieve: Sieve) -> None:
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda body: told(sieve.looked, body), BODIES * 2)) == [
            told(looked, body) for body in BODIES * 2
        ]


def test_it_knows_nothing_and_stands_back(sieve: Sieve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LODGER_DATABASE_URL", "postgresql://secret")
    sieve.looked(b"{}", MOST)
    pid = process(sieve)
    assert b"LODGER" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)
    assert os.getsid(pid) == pid, "Ctrl-C is for the server"
    held = {os.readlink(f"/proc/{pid}/fd/{each}") for each in os.listdir(f"/proc/{pid}/fd") if each != "2"}
    assert len(held) == 2, held


def test_a_folder_with_files_of_its_own_names_is_no_hindrance(
    sieve: Sieve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("json", "struct", "lodger"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert sieve.looked(b"{}", MOST)
    os.kill(process(sieve), 0)


def test_one_that_is_lost_costs_nobody_an_answer(sieve: Sieve) -> None:
    for _ in range(3):
        assert sieve.looked(b"{}", MOST)
        os.kill(process(sieve), signal.SIGKILL)
        assert told(sieve.looked, b"[" * 100_000) == told(looked, b"[" * 100_000)


@pytest.mark.parametrize(
    "body", [b"{}", b'{"a": "' + b"x" * 500_000 + b'"}'], ids=["while it answers", "while it reads"]
)
def test_one_that_stands_still_is_given_up(sieve: Sieve, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frozen with its control group, or starved: all bodies go through one, and none may wait for it for ever."""
    assert sieve.looked(b"{}", MOST)
    frozen = process(sieve)
    os.kill(frozen, signal.SIGSTOP)
    monkeypatch.setattr("lodger.engine.server.sieve.PATIENCE_S", 0.05)
    assert sieve.looked(body, MOST)
    with pytest.raises(ProcessLookupError):
        os.kill(frozen, 0)
    monkeypatch.undo()
    assert sieve.looked(body, MOST), "the next one is as good"
    assert process(sieve) != frozen


def test_no_body_keeps_its_other_threads_waiting(sieve: Sieve) -> None:
    """What it takes is the other process's time: of this one it takes a copy of the bytes."""
    heavy = json.dumps({"a": [{"b": 1}] * (VALUES // 4)}).encode()
    sieve.looked(heavy, MOST)
    begun = time.process_time()
    for _ in range(3):
        assert sieve.looked(heavy, MOST)
    elsewhere = time.process_time() - begun
    begun = time.process_time()
    for _ in range(3):
        assert looked(heavy, MOST)
    assert elsewhere < (time.process_time() - begun) / 2


def process(sieve: Sieve) -> int:
    """Give the pid of a sieve's process."""
    found = sieve._process
    assert found is not None
    return found.pid
