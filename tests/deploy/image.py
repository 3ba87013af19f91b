"""The image of deploy/Dockerfile on a base made from Debian's packages, in a storage of podman that is removed afterwards."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.databases.next_release import advanced

from lodger.engine.core.version import VERSION

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


NEXT_VERSION = "9.9.9"
#: The image of the next release: the same packages, one migration more.
NEXT = r"""
FROM lodger
COPY next/lodger /next
USER root
RUN cp -r /next/* /opt/lodger/lib/python3*/site-packages/lodger/
USER 10001:10001
"""
#: Runs a command as a user without rights, to whom a range of uids is delegated in this mount namespace alone.
ROOTLESS = (
    'mount --bind "$0" /etc/subuid && mount --bind "$0" /etc/subgid'
    ' && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"'
)


class Podman:
    """podman with a storage and limits of its own in a folder.

    Attributes:
        project: name of what podman-compose starts; of the network, which is not in the folder, too.
        rootless: whether it runs as a user without rights.
    """

    def __init__(self, folder: Path, *, rootless: bool = False) -> None:
        self.folder, self.rootless = folder, rootless
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
        if rootless:
            (folder / "subid").write_text("65534:300000:65536\n")
            (folder / "session").mkdir(mode=0o700)
            for place in (folder, folder / "session"):
                os.chown(place, 65534, 65534)
            self._env |= {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "session")}

    def run(self, program: str, *arguments: str | Path, given: str = "", timeout_s: float = 120) -> str:
        """Run a program beside this storage; return its output."""
        first = ("unshare", "-m", "sh", "-c", ROOTLESS, str(self.folder / "subid")) if self.rootless else ()
        done = subprocess.run(
            [*first, program, *map(str, arguments)],
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
            with suppress(AssertionError):
                self.run("podman", *arguments)
        for holder in self.folder.glob("session/**/pause.pid"):  # keeps the namespaces of a user without rights
            os.kill(int(holder.read_text()), signal.SIGKILL)
        subprocess.run(["umount", "--lazy", "--quiet", self.folder / "graph/overlay"], check=False)
        shutil.rmtree(self.folder)

    @contextmanager
    def without_rights(self, *images: str) -> Iterator["Podman"]:
        """Return podman of a user without rights, with a copy of some images."""
        other = Podman(Path(tempfile.mkdtemp(prefix="lodger-image-", dir="/var/tmp")), rootless=True)
        try:
            shutil.copytree(self.folder / "checkout" / "deploy", other.folder / "checkout" / "deploy")
            self.run("podman", "save", "-q", "-m", "-o", other.folder / "images.tar", *images)
            (other.folder / "images.tar").chmod(0o644)
            other.run("podman", "load", "-q", "-i", other.folder / "images.tar")
            (other.folder / "images.tar").unlink()
            yield other
        finally:
            other.remove()


def absent() -> str | None:
    """Return why the image is not run, or None."""
    if not os.environ.get("LODGER_IMAGE"):
        return "it takes minutes (LODGER_IMAGE=1)"
    for program in ("podman", "podman-compose", "mmdebstrap", "newuidmap", "slirp4netns"):
        if shutil.which(program) is None:
            return (
                f"{program} is not installed (apt-get install podman podman-compose runc mmdebstrap uidmap slirp4netns)"
            )
    if os.geteuid():
        return "it needs root, also to become the user of podman without root"
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
        (checkout / "Next").write_text(NEXT)
        zipfile.ZipFile(next((checkout / "dist").glob("*.whl"))).extractall(checkout / "next")
        version = advanced(checkout / "next" / "lodger") / "engine/core/version.py"
        version.write_text(version.read_text().replace(VERSION, NEXT_VERSION))
        podman.build("lodger-next", checkout / "Next")
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
