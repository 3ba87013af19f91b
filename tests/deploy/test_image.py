"""The image runs: its walls under seccomp profiles, attacks, the demonstration, compose.yaml with a killed node; and the units do."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.deploy.image import MACHINE, Podman, absent, built, until

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


def test_an_ordinary_user_runs_attacks_and_the_demonstration_without_developers_tools(podman: Podman) -> None:
    profile = f"--security-opt=seccomp={podman.folder / 'checkout/deploy/seccomp.json'}"
    look = "id -u; for each in cc gcc git npm node; do command -v $each; done; true"
    said = podman.run("podman", "run", "--rm", *("--network=none", "--entrypoint=sh"), "lodger", "-c", look)
    assert said.split() == ["10001"]
    attacks = json.loads(podman.lodger("escape", "--class", "1", "--json", options=(profile,)))
    assert attacks["ok"]
    summary = podman.lodger("demo", "--for", "10s", options=(profile,))
    assert "The ledger after 10 s:" in summary
    assert "harbor/confirm-orders" in summary


def test_a_node_of_the_compose_file_takes_over_what_a_killed_one_ran(podman: Podman) -> None:
    file = podman.folder / "checkout/deploy/compose.yaml"
    text = file.read_text()
    assert "127.0.0.1:8750:8750" in text
    file.write_text(text.replace("127.0.0.1:8750:8750", "127.0.0.1::8750"))  # a free port of the host
    api = f"{podman.project}_api_1"
    (file.parent / ".env").write_text("POSTGRES_PASSWORD=of-this-test\n")
    podman.run("podman-compose", "-f", file, "-p", podman.project, "up", "-d")

    def lodger(*arguments: str, given: str = "") -> Any:
        said = podman.run("podman", "exec", "-i", api, "lodger", *arguments, "--json", given=given)
        return json.loads(said)

    def patient(look: Callable[[], Any]) -> Callable[[], Any]:
        """Try again what failed: podman's name server reads its files anew whenever a container starts or ends."""

        def looked() -> Any:
            try:
                return look()
            except AssertionError:
                return None

        return looked

    def ready() -> bool | None:
        alive = [node["name"] for node in lodger("node", "list")["nodes"] if node["state"] == "alive"]
        return True if sorted(alive) == ["node-a", "node-b"] else None

    def ended(action: str) -> dict[str, Any] | None:
        shown: dict[str, Any] = lodger("action", "show", "acme", action)
        return shown if shown["action"]["state"] == "done" else None

    def running() -> dict[str, Any] | None:
        return next(iter(lodger("action", "list", "acme", "--state", "running")["actions"]), None)

    until(lambda: "running" in podman.run("podman", "inspect", "--format={{.State.Status}}", api) or None, "API")
    until(patient(ready), "two nodes")
    walls = [node["walls"] for node in lodger("node", "list")["nodes"]]
    assert all(each["namespaces"] and each["root"] and each["landlock"] for each in walls)
    port = podman.run("podman", "port", api, "8750/tcp").strip()
    with urllib.request.urlopen(f"http://{port}/health/ready", timeout=20) as answer:
        assert answer.status == 200

    # The first attempt lasts until its node is killed, however slow this machine is.
    limits = {"wall_ms": 290_000}
    script = "export default async ({ action }) => { if (action.attempt === 1) await new Promise((end) => setTimeout(end, 280_000)); }"
    lodger("tenant", "create", "acme", "--limits", json.dumps(limits | {"min_interval_s": 1}))
    lodger("script", "put", "acme", "long", "-", given=script)
    bound = ("--script", "long", "--rule", "every 1s", "--limits", json.dumps(limits))
    lodger("schedule", "create", "acme", "long", *bound)
    action = until(patient(running), "a running action")["id"]
    first = lodger("action", "show", "acme", action)["attempts"][0]["node"]
    podman.run("podman", "kill", f"{podman.project}_{first}_1")
    done = until(patient(lambda: ended(action)), "the end of the action")
    assert done["action"]["outcome"] == "ok"
    assert {each["node"] for each in done["attempts"]} == {"node-a", "node-b"}, done
    podman.run("podman-compose", "-f", file, "-p", podman.project, "down", "-t", "40")


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
