"""Coverage of the catalogue: each class has cases, a named test, or a reason why not; the page on security agrees with both."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from datetime import date
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.escape.owned_attacks import ATTACKS

import lodger.engine
import lodger.sandbox
import lodger.stdlib
from lodger.escape.arena import RUNTIMES
from lodger.escape.cases import PARTS, all_cases
from lodger.escape.catalogue import CLASSES, LETTERS
from lodger.escape.layers import LAYERS
from lodger.sandbox.doctor import WALLS

pytestmark = pytest.mark.usefixtures("uncollected")
TESTS = Path(__file__).parent.parent
CASES = all_cases()
#: Tests of classes that need more than an installed Lodger has (native code in a worker, several nodes, servers, a clock that can be set).
ELSEWHERE: dict[int, tuple[str, ...]] = {
    29: ("escape/test_owned_worker.py::test_half_a_frame_and_then_nothing",),
    35: ("store/test_claims.py",),
    36: ("store/test_claims.py",),
    51: ("escape/test_coverage.py::test_no_codec_that_builds_objects_is_ever_loaded",),
    54: (
        "store/test_claims.py",
        "api/test_requests.py",
    ),
    56: ("escape/test_owned_worker.py::test_descriptors_that_it_sends_never_arrive",),
    69: ("features/webhooks/test_webhooks.py",),
    70: ("features/archive/test_bent_archives.py::test_rows_of_another_tenant_become_this_ones",),
    71: ("store/test_leases.py",),
    72: ("store/test_grants.py",),
    94: ("escape/test_degraded_host.py::test_missing_walls_are_said_and_enough_of_them_refuse",),
    96: ("escape/test_coverage.py::test_nothing_of_the_parents_signals_by_number",),
    100: ("egress/test_forbidden_places.py",),
    101: ("egress/test_forbidden_places.py",),
    102: ("egress/test_forbidden_places.py",),
    103: ("egress/test_client.py",),
    105: ("egress/test_client.py",),
    106: ("egress/test_reading.py",),
    107: ("egress/test_client.py",),
    108: ("egress/test_client.py",),
    109: ("egress/test_reading.py",),
    110: ("egress/test_client.py",),
    111: ("egress/test_tls.py",),
    113: ("egress/test_forbidden_places.py",),
    115: ("unit/recurrence/test_union.py",),
    119: ("unit/recurrence/test_bounded_work.py",),
    120: ("sim",),
    121: ("api/test_route_table.py",),
    122: ("web/test_every_page.py::test_every_page_is_accessible_fits_its_window_prints_and_runs_no_hostile_text",),
    124: ("api/test_requests.py",),
}
#: Attacks of native code (test_owned_worker.py) by class.
NATIVE = {
    82: ("io-uring",),
    84: ("key-add", "key-session"),
    86: ("lock", "watch-files"),
    88: ("bpf", "kexec"),
    92: ("open-own-memory",),
}
#: Classes that do not apply, and why.
NOTHING: dict[int, str] = {
    68: "ids are random within a millisecond; no number that counts across tenants is handed out, but for a platform's own serial columns",
}
#: Chapters about the sandbox and the host calls.
OURS = "ABCEI"


def test_every_class_is_answered_for_exactly_once() -> None:
    with_cases = {case.number for case in CASES}
    elsewhere = [*ELSEWHERE, *NATIVE, *NOTHING]
    assert len(set(elsewhere)) == len(elsewhere)
    assert with_cases | set(elsewhere) == set(CLASSES)
    assert not with_cases & set(elsewhere), "a class with cases needs no excuse"
    assert not {number for number in NOTHING if LETTERS[number] in OURS}


@pytest.mark.parametrize("place", sorted({place for places in ELSEWHERE.values() for place in places}))
def test_a_test_that_is_named_exists(place: str) -> None:
    where, _, name = place.partition("::")
    files = [*(TESTS / where).glob("test_*.py")] or [TESTS / where]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in names if name else any(one.startswith("test_") for one in names)


def test_attacks_of_native_code_that_are_named_exist() -> None:
    assert {name for names in NATIVE.values() for name in names} <= {attack.name for attack in ATTACKS}


def test_there_are_enough_and_every_runtime_has_its_share() -> None:
    triples = {case.triple for case in CASES}
    assert len(triples) == len(CASES) >= 1000
    runs = Counter(runtime for case in CASES for runtime in case.runtimes)
    assert set(runs) == set(RUNTIMES)
    assert min(runs[runtime] for runtime in ("quickjs", "quickjs-native")) >= 400
    assert runs["wasm"] >= 200
    for runtime in ("quickjs", "quickjs-native", "wasm"):
        classes = {case.letter for case in CASES if runtime in case.runtimes}
        assert classes >= ({"B", "E", "I"} if runtime == "wasm" else {"A", "B", "C", "D", "E", "F"})


def test_cases_are_tables() -> None:
    """A case has number, story, wall and runtime, and importing its module only builds the table."""
    for case in CASES:
        assert case.number in CLASSES
        assert case.story, case.id
        assert case.mechanism, case.id
        assert set(case.runtimes) <= set(RUNTIMES), case.id
        assert {case.wall, *case.behind} <= set(LAYERS), case.id
        assert case.wall not in case.behind, case.id
    assert {case.id for part in PARTS for case in all_cases(part)} == {case.id for case in CASES}


def test_the_guide_names_every_chapter() -> None:
    guide = (TESTS.parent / "docs" / "escape-suite.md").read_text()
    rows = re.findall(r"^\| ([A-I]) \|", guide, re.MULTILINE)
    assert rows == sorted({LETTERS[number] for number in CLASSES})


# -- classes with a short proof --


def sources(holding: Iterable[str]) -> dict[Path, ast.Module]:
    """Parse those installed modules that hold one of the words."""
    roots = [Path(str(package.__file__)).resolve().parent for package in (lodger.engine, lodger.sandbox, lodger.stdlib)]
    texts = {path: path.read_text("utf-8") for root in roots for path in root.rglob("*.py")}
    assert len(texts) > 200
    words = re.compile("|".join(holding))
    return {path: ast.parse(text) for path, text in texts.items() if words.search(text)}


def test_no_codec_that_builds_objects_is_ever_loaded() -> None:
    """Class 51: tenants' bytes are read as JSON; no module imports a codec that can build objects."""
    builders = {
        "pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "yaml", "xmlrpc",
    }  # fmt: skip
    for path, tree in sources(builders).items():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & builders, path


#: Folders of the sandbox with modules for the engine's process.
PARENT_SIDE = {"sandbox", "wasm", "workers"}


def test_nothing_of_the_parents_signals_by_number() -> None:
    """Class 96: a process id may be reused, a pidfd refers to one process."""
    by_number = {"kill", "killpg", "pthread_kill", "tgkill"}
    for path, tree in sources(by_number).items():
        if path.parent.name in PARENT_SIDE:
            calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
            assert (
                not {call.attr for call in calls if isinstance(call, ast.Attribute) and _is_system_call(call)}
                & by_number
            ), path


def _is_system_call(call: ast.Attribute) -> bool:
    """Whether an attribute belongs to module os or signal."""
    return isinstance(call.value, ast.Name) and call.value.id in ("os", "signal")


ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
#: Names of the kernel's walls on the page.
CALLED = {
    "rlimits": "rlimits",
    "seccomp": "seccomp",
    "landlock": "Landlock",
    "namespaces": "namespaces",
    "root": "empty root",
    "uid": "uid of its own",
    "no_new_privs": "no_new_privs",
    "undumpable": "undumpable",
    "death_signal": "death signal",
    "oom": "OOM score",
    "cpu_timer": "CPU timer",
    "cgroup": "control group",
}


def section(title: str) -> str:
    """Return the text of a section of the page."""
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_engines_on_the_page_are_the_pinned_and_the_installed_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = dict(
        re.findall(
            r"([a-z-]+)==([0-9.]+)", " ".join([*project["dependencies"], *project["optional-dependencies"]["native"]])
        )
    )
    engines = section("Engine versions")
    for name in ("wasmtime", "quickjs-rs", "quickjs-ng"):
        assert version(name) == pinned[name], "what stands in the wall is pinned exactly"
        assert pinned[name] in engines, f"{name} on the page is another one"


def test_the_table_of_known_errors_has_its_date_and_names_cases_that_exist() -> None:
    engines = section("Engine versions")
    reported = date.fromisoformat(re.search(r"State of\s+(\d{4}-\d\d-\d\d)", engines)[1])
    assert reported >= date(2026, 11, 20)
    ids = {case.id for case in all_cases()}
    for prefix in re.findall(r"`([A-I]\d+-)…`", engines):
        assert any(case.startswith(prefix) for case in ids), prefix


def test_every_wall_of_the_kernel_is_explained() -> None:
    walls = section("Walls, and what each one stops")
    assert {wall.name for wall in WALLS} == set(CALLED)
    for wall in WALLS:
        assert CALLED[wall.name] in walls, wall.name


def test_a_promise_names_classes_that_are_attacked_and_tests_that_exist() -> None:
    promises = section("Promises")
    attacked = {case.number for case in all_cases()}
    named = [(text, int(number)) for text, number in re.findall(r"\b([A-I])(\d+)\b", promises)]
    assert len(named) >= 15
    for chapter, number in named:
        assert number in CLASSES
        assert LETTERS[number] == chapter
        assert number in attacked, f"{chapter}{number} is promised and not attacked"
    for place in re.findall(r"`(tests/[a-z_/]+(?:\.py)?)`", PAGE):
        assert (ROOT / place).exists(), place
