"""The image of deploy/Dockerfile on a base made from Debian's packages, in a storage of podman that is removed afterwards."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: The release of Debian that has this Python: wheels for it are downloaded with this machine's pip and its settings.
SUITE = {(3, 11): "bookworm", (3, 13): "trixie"}
#: As compose.yaml runs a node, without a network.
CONFINED = ("--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--tmpfs=/tmp", "--network=none")
#: Stands in for the image postgres:17: the same variables, Debian's server.
POSTGRES = r"""
ARG BASE
FROM ${BASE}
RUN apt-get update && apt-get install -y --no-install-recommends postgresql && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/
RUN printf '%s\n' '#!/bin/sh' 'set -e' 'echo "$POSTGRES_PASSWORD" > /tmp/password' \
    'initdb -D /tmp/data -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 $POSTGRES_INITDB_ARGS' \
    'echo "host all all all scram-sha-256" >> /tmp/data/pg_hba.conf' \
    'echo "create database $POSTGRES_USER;" | postgres --single -D /tmp/data postgres' \
    "exec postgres -D /tmp/data -c listen_addresses='*'" > /start && chmod +x /start
USER postgres
ENTRYPOINT ["/start"]
"""

#: A machine whose first process is systemd, with the units and the installation of the image.
MACHINE = r"""
FROM lodger
USER root
RUN apt-get update && apt-get install -y --no-install-recommends systemd systemd-sysv
COPY deploy/systemd/*.service /etc/systemd/system/
RUN install -d -m 700 /etc/lodger && echo LODGER_DATABASE=/var/lib/lodger/ledger.db > /etc/lodger/lodger.env \
    && systemctl enable lodger-node lodger-api
STOPSIGNAL SIGRTMIN+3
ENTRYPOINT ["/sbin/init"]
CMD []
"""


class Podman:
    """podman with a storage and limits of its own in a folder.

    Attributes:
        project: name of what podman-compose starts; of the network, which is not in the folder, too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = f"lodger{os.getpid()}"
        runtime = 'runtime = "runc"\n' if shutil.which("runc", path=os.environ["PATH"] + ":/usr/sbin") else ""
        (folder / "containers.conf").write_text(
            f'[engine]\n{runtime}volume_path = "{folder}/volumes"\n'
            '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]\n'
        )
        (folder / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
        )
        self._env = os.environ | {
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        }

    def run(self, program: str, *arguments: str | Path, given: str = "", timeout_s: float = 120) -> str:
        """Run a program beside this storage; return its output."""
        done = subprocess.run(
            [program, *map(str, arguments)],
            input=given, capture_output=True, text=True, env=self._env, cwd=self.folder, timeout=timeout_s, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{program} {arguments}: {done.stdout[-1000:]} {done.stderr[-3000:]}"
        return done.stdout

    def build(self, tag: str, file: Path, *arguments: str) -> None:
        """Build an image without layers that stay."""
        common = ("--layers=false", "--network=host", "--build-arg=BASE=lodger-base", *arguments)
        self.run("podman", "build", *common, "-f", file, "-t", tag, self.folder / "checkout", timeout_s=400)

    def lodger(self, *arguments: str, options: tuple[str, ...] = ()) -> str:
        """Run a command in a container of the image that is removed when it ends."""
        return self.run("podman", "run", "--rm", *CONFINED, *options, "lodger", *arguments)

    def remove(self) -> None:
        """Remove containers, images and the folder."""
        for arguments in (("rm", "-af", "-t", "0"), ("rmi", "-af"), ("network", "rm", f"{self.project}_default")):
            subprocess.run(["podman", *arguments], env=self._env, capture_output=True, timeout=100, check=False)
        shutil.rmtree(self.folder)


def absent() -> str | None:
    """Return why the image is not run, or None."""
    if not os.environ.get("LODGER_IMAGE"):
        return "it takes minutes (LODGER_IMAGE=1)"
    for program in ("podman", "podman-compose", "mmdebstrap"):
        if shutil.which(program) is None:
            return f"{program} is not installed (apt-get install podman podman-compose runc mmdebstrap)"
    if sys.version_info[:2] not in SUITE:
        return f"Debian has no Python {sys.version_info[0]}.{sys.version_info[1]} (run the tests with 3.11 or 3.13)"
    return None


@contextmanager
def built() -> Iterator[Podman]:
    """Make the base, the image from the wheel, and an image with PostgreSQL; remove everything afterwards."""
    podman = Podman(Path(tempfile.mkdtemp(prefix="lodger-image-", dir="/var/tmp")))  # sockets want a short path
    try:
        base, wheels = podman.folder / "base.tar", podman.folder / "wheels"
        options = ("--quiet", "--variant=minbase", "--include=python3,python3-venv", "--dpkgopt=force-unsafe-io")
        command = ["mmdebstrap", *options, SUITE[sys.version_info[:2]], str(base)]
        made = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
        if made.returncode:
            pytest.skip(f"NOT TESTED image: mmdebstrap makes no base here: {made.stderr.strip()[-300:]}")
        podman.run("podman", "import", base, "lodger-base")
        base.unlink()
        checkout = podman.folder / "checkout"
        shutil.copytree(ROOT / "deploy", checkout / "deploy")
        hatchling = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(checkout / "dist"))
        subprocess.run(hatchling, cwd=ROOT, check=True, capture_output=True, timeout=120)
        lock = ROOT / "deploy" / "requirements.lock"
        podman.run(
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--only-binary=:all:",
            "--require-hashes",
            "-r",
            lock,
            "-d",
            wheels,
        )
        podman.build(
            "lodger", checkout / "deploy" / "Dockerfile",
            f"--volume={wheels}:/wheels:ro", "--build-arg=PIP_NO_INDEX=1", "--build-arg=PIP_FIND_LINKS=/wheels",
        )  # fmt: skip
        shutil.rmtree(wheels)
        (checkout / "Postgres").write_text(POSTGRES)
        podman.build("postgres:17", checkout / "Postgres")
        yield podman
    finally:
        podman.remove()


def until(found: Callable[[], Any], what: str, seconds: float = 100) -> Any:
    """Ask until there is an answer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (value := found()) is not None:
            return value
    raise AssertionError(f"not within {seconds} s: {what}")
