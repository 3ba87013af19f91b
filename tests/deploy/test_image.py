"""The image runs: its walls under seccomp profiles; without root attacks, demonstration, compose.yaml and upgrade; and the units."""

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.deploy.image import MACHINE, NEXT_VERSION, ROOT, Podman, absent, built, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(absent() is not None, reason=f"NOT TESTED image: {absent()}"),
]


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with built() as images:
        yield images


def missing_walls(podman: Podman, *options: str) -> set[str]:
    report = json.loads(podman.lodger("doctor", "--json", options=options))
    assert report["ok"], report
    return {wall["wall"] for wall in report["walls"] if wall["state"] == "missing"}


def test_the_first_lines_of_the_readme_install_and_run_where_there_are_no_developers_tools(podman: Podman) -> None:
    (lines,) = re.findall(r"```sh\n(python3 -m venv.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (wheel,) = (podman.folder / "checkout/dist").glob("*.whl")
    assert f"./{wheel.name}[" in lines, "of the version that is released"
    # An index is not reached: the wheels of the lock file stand for it.
    options = (
        "--network=none", "--entrypoint=", "--workdir=/home",
        f"--volume={wheel.parent}:/dist:ro", f"--volume={podman.folder}/wheels:/wheels:ro",
        "--env=PIP_NO_INDEX=1", "--env=PIP_FIND_LINKS=/wheels",
    )  # fmt: skip
    tried = (
        "for each in cc gcc git npm node; do ! command -v $each || exit 9; done; cp /dist/*.whl .\n"
        + lines.replace("lodger demo ", "lodger demo --for 5s ")
        + "pip install 'lodger[web]'; python -c 'import starlette'"
    )
    said = podman.run("podman", "run", "--rm", *options, "lodger-base", "sh", "-ec", tried)
    assert re.search(r"The ledger after [\d.]+ s:", said)


def test_the_shipped_profile_lets_every_wall_stand_but_the_uid(podman: Podman) -> None:
    # The container engine gives no writable cgroup: that wall is the operator's, LODGER_CGROUP.
    assert missing_walls(podman) - {"namespaces", "root"} == {"uid", "cgroup"}, "the container engine's own profile"
    shipped = json.loads((podman.folder / "checkout/deploy/seccomp.json").read_text())
    for left_out, expected in {
        (): set(),
        ("unshare",): {"namespaces", "root"},  # as the default of Docker and containerd
        ("mount",): {"root"},
        ("landlock_restrict_self",): {"landlock"},
    }.items():
        calls = [
            each | {"names": [name for name in each["names"] if name not in left_out]} for each in shipped["syscalls"]
        ]
        profile = podman.folder / "profile.json"
        profile.write_text(json.dumps(shipped | {"syscalls": [each for each in calls if each["names"]]}))
        found = missing_walls(podman, f"--security-opt=seccomp={profile}")
        assert found == {"uid", "cgroup"} | expected, f"without {left_out}"


@pytest.fixture(scope="module")
def rootless(podman: Podman) -> Iterator[Podman]:
    with podman.without_rights("lodger", "lodger-next", "postgres:17") as found:
        yield found


def test_without_root_the_image_runs_attacks_and_the_demonstration_without_developers_tools(rootless: Podman) -> None:
    assert rootless.run("podman", "info", "--format={{.Host.Security.Rootless}}").strip() == "true"
    profile = f"--security-opt=seccomp={rootless.folder / 'checkout/deploy/seccomp.json'}"
    look = "id -u; for each in cc gcc git npm node; do command -v $each; done; true"
    said = rootless.run("podman", "run", "--rm", *("--network=none", "--entrypoint=sh"), "lodger", "-c", look)
    assert said.split() == ["10001"]
    assert missing_walls(rootless, profile) == {"uid", "cgroup"}
    # A home that cannot be written, with and without a folder that is set.
    for options in ((profile,), (profile, "--env=HOME=/nonexistent", "--env=LODGER_CACHE_DIR=")):
        attacks = json.loads(rootless.lodger("escape", "--quick", "--json", options=options))
        assert attacks["ok"], attacks["summary"]
        assert attacks["summary"]["contained"] > 100
    summary = rootless.lodger("demo", "--for", "10s", options=(profile,))
    assert re.search(r"The ledger after [\d.]+ s:", summary)
    assert "harbor/confirm-orders" in summary


class Composed:
    """compose.yaml as it runs, without root."""

    def __init__(self, podman: Podman) -> None:
        self.podman = podman
        self.file = podman.folder / "checkout/deploy/compose.yaml"

    def compose(self, *arguments: str) -> None:
        self.podman.run("podman-compose", "-f", self.file, "-p", self.podman.project, *arguments)

    def container(self, service: str) -> str:
        return f"{self.podman.project}_{service}_1"

    def lodger(self, *arguments: str, given: str = "") -> Any:
        said = self.podman.run(
            "podman", "exec", "-i", self.container("api"), "lodger", *arguments, "--json", given=given
        )
        return json.loads(said)

    def alive(self) -> dict[str, dict[str, Any]]:
        return {node["name"]: node for node in self.lodger("node", "list")["nodes"] if node["state"] == "alive"}

    def until(self, look: Callable[[], Any], what: str) -> Any:
        """Ask until there is an answer; podman's name server reads its files anew whenever a container starts or ends."""

        def looked() -> Any:
            try:
                return look()
            except AssertionError:
                return None

        return until(looked, what)

    def ready(self) -> None:
        self.until(lambda: self.alive().keys() == {"node-a", "node-b"} or None, "two nodes")


@pytest.fixture(scope="module")
def composed(rootless: Podman) -> Iterator[Composed]:
    made = Composed(rootless)
    text = made.file.read_text()
    assert "127.0.0.1:8750:8750" in text
    made.file.write_text(text.replace("127.0.0.1:8750:8750", "127.0.0.1::8750"))  # a free port of the host
    (made.file.parent / ".env").write_text("POSTGRES_PASSWORD=of-this-test\n")
    made.compose("up", "-d")
    api = made.container("api")
    until(lambda: "running" in rootless.run("podman", "inspect", "--format={{.State.Status}}", api) or None, "API")
    made.ready()
    yield made
    made.compose("down", "-t", "40")


def test_a_node_of_the_compose_file_takes_over_what_a_killed_one_ran(composed: Composed) -> None:
    walls = [node["walls"] for node in composed.alive().values()]
    assert all(each["namespaces"] and each["root"] and each["landlock"] for each in walls)
    port = composed.podman.run("podman", "port", composed.container("api"), "8750/tcp").strip()
    with urllib.request.urlopen(f"http://{port}/health/ready", timeout=20) as answer:
        assert answer.status == 200

    def ended(action: str) -> dict[str, Any] | None:
        shown: dict[str, Any] = composed.lodger("action", "show", "acme", action)
        return shown if shown["action"]["state"] == "done" else None

    def running() -> dict[str, Any] | None:
        return next(iter(composed.lodger("action", "list", "acme", "--state", "running")["actions"]), None)

    # The first attempt lasts until its node is killed, however slow this machine is.
    limits = {"wall_ms": 290_000}
    script = "export default async ({ action }) => { if (action.attempt === 1) await new Promise((end) => setTimeout(end, 280_000)); }"
    composed.lodger("tenant", "create", "acme", "--limits", json.dumps(limits | {"min_interval_s": 1}))
    composed.lodger("script", "put", "acme", "long", "-", given=script)
    bound = ("--script", "long", "--rule", "every 1s", "--limits", json.dumps(limits))
    composed.lodger("schedule", "create", "acme", "long", *bound)
    action = composed.until(running, "a running action")["id"]
    first = composed.lodger("action", "show", "acme", action)["attempts"][0]["node"]
    composed.podman.run("podman", "kill", composed.container(first))
    done = composed.until(lambda: ended(action), "the end of the action")
    assert done["action"]["outcome"] == "ok"
    assert {each["node"] for each in done["attempts"]} == {"node-a", "node-b"}, done
    composed.lodger("schedule", "delete", "acme", "long", "--yes")
    composed.podman.run("podman", "start", composed.container(first))


def test_the_image_is_upgraded_while_slots_run_and_none_is_lost_late_or_doubled(composed: Composed) -> None:
    podman = composed.podman
    composed.ready()
    script = "export default async ({ db, slot }) => { await db.seen.insert({ slot: String(slot) }); }"
    composed.lodger("tenant", "create", "bird", "--limits", json.dumps({"min_interval_s": 1}))
    composed.lodger("script", "put", "bird", "job", "-", given=script)
    bound = ("--script", "job", "--rule", "every 1s", "--overlap", "allow")
    composed.lodger("schedule", "create", "bird", "s", *bound)

    def more() -> None:
        """Wait for some further runs."""
        wanted = len(ended()) + 5
        composed.until(lambda: len(ended()) >= wanted or None, "further runs")

    def ended() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = composed.lodger("action", "list", "bird", "--state", "done", "-n", "1000")[
            "actions"
        ]
        return found

    more()
    podman.run("podman", "tag", "lodger-next", "lodger")
    composed.compose("run", "--rm", "-T", "api", "db", "upgrade", "--without-backup")
    for service in ("node-a", "node-b", "api"):
        podman.run("podman", "stop", "-t", "45", composed.container(service))
        podman.run("podman", "rm", composed.container(service))
        composed.compose("up", "-d", "--no-deps", service)
        said = podman.run("podman", "exec", composed.container(service), "lodger", "--version")
        assert NEXT_VERSION in said
        composed.ready()
        more()
    composed.lodger("schedule", "pause", "bird", "s")
    composed.until(
        lambda: not composed.lodger("action", "list", "bird", "--state", "running")["actions"] or None, "the end"
    )
    actions = ended()
    assert {each["outcome"] for each in actions} == {"ok"}
    assert {each["attempt"] for each in actions} == {1}
    slots = sorted(datetime.fromisoformat(each["slot"]) for each in actions)
    assert [after - before for before, after in pairwise(slots)] == [timedelta(seconds=1)] * (len(slots) - 1)
    (seen,) = composed.lodger("collection", "list", "bird")["collections"]
    assert seen["documents"] == len(slots)


def test_the_units_run_as_services_and_come_back(podman: Podman) -> None:
    file = podman.folder / "checkout" / "Machine"
    file.write_text(MACHINE)
    podman.build("machine", file)
    # No more rights than systemd needs: the settings of this machine's kernel stay read-only.
    options = ("--systemd=always", "--cap-add=SYS_ADMIN", "--security-opt=seccomp=unconfined", "--network=none")
    machine = f"{podman.project}_machine"
    podman.run("podman", "run", "-d", f"--name={machine}", *options, "machine")

    def inside(*command: str) -> str:
        return podman.run("podman", "exec", machine, *command)

    def alive() -> dict[str, dict[str, Any]] | None:
        try:
            said = inside("runuser", "-u", "lodger", "--", "lodger", "node", "list", "--json")
        except AssertionError:  # the machine starts, or there is no ledger yet
            return None
        nodes = {each["id"]: each for each in json.loads(said)["nodes"] if each["state"] == "alive"}
        return nodes or None

    before = until(alive, "a node")
    assert inside("systemctl", "is-active", "lodger-node", "lodger-api").split() == ["active", "active"]
    (node,) = before.values()
    assert {name for name, stands in node["walls"].items() if not stands} - {"cgroup"} == {"uid"}
    inside("systemctl", "kill", "--signal=KILL", "lodger-node")
    until(lambda: (alive() or {}).keys() - before.keys() or None, "a node after SIGKILL")
    inside("systemctl", "stop", "lodger-node", "lodger-api")
    said = inside("systemctl", "show", "--property=Result", "--value", "lodger-node", "lodger-api")
    assert said.split() == ["success", "success"]
    podman.run("podman", "rm", "-f", "-t", "20", machine)
