"""Writing an archive to a file: whole or not at all, whatever was there before, and readable by its owner only."""

import os
from pathlib import Path

import pytest

from lodger.engine.output.files import write_whole


def test_a_file_is_whole_and_its_owners(tmp_path: Path) -> None:
    place = tmp_path / "acme.archive"
    for content in (b"one", b"another"):
        assert write_whole(str(place), content)
        assert place.read_bytes() == content
        assert place.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("end", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_cannot_be_written_leaves_what_was_there(
    tmp_path: Path, end: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "acme.archive"
    write_whole(str(place), b"the only one")

    def full(_descriptor: int) -> None:
        raise end

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(type(end)):
        write_whole(str(place), b"half of")
    assert place.read_bytes() == b"the only one"
    assert list(tmp_path.iterdir()) == [place]


def test_a_stream_is_written_into(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert not write_whole("-", b"bytes")
    assert write_whole("/dev/null", b"bytes")
    assert capfdbinary.readouterr().out == b"bytes"
    assert not Path("/dev/null").is_file()
