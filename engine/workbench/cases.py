"""The cases of a folder's tests: read from NAME.test.js in the sandbox, run on one stage with fake time, judged in the sandbox again.

A case is a tenant of its own, so that cases share a ledger and workers and see nothing of each other. Time passes once: all cases begin and
end in the order of their instants. The text of a test is a tenant's script like any other and gets no grant.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from lodger.engine.core import strict_json
from lodger.engine.core.clock import zulu
from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.functions import PlatformFunction
from lodger.engine.core.serialization import from_jsonable, to_jsonable
from lodger.engine.effects import kv_store
from lodger.engine.output import script_files
from lodger.engine.output.files import MAX_BYTES
from lodger.engine.recurrence.duration import parse_duration
from lodger.engine.service.operations.route import Instant
from lodger.engine.store.actions import later_runs
from lodger.engine.store.records import Action
from lodger.engine.testing import Stage
from lodger.engine.testing.clock import BEGIN
from lodger.engine.testing.recordings import Recordings, check_recordings
from lodger.engine.vault.keyring import Keyring
from lodger.engine.workbench.check import next_slots
from lodger.engine.workbench.findings import Finding, nearest, similar
from lodger.engine.workbench.schedules_file import script_names
from lodger.engine.workbench.script_folder import ScriptFolder
from lodger.engine.workbench.stocking import store_schedule, store_script
from lodger.sandbox import prescan
from lodger.sandbox.job import LAST_YEAR
from lodger.sandbox.source_faults import faults

#: The tenant of the tests' own runs, and the script that gives a case its documents and values.
TENANT, SEED = "tests", "lodger-seed"
MAIN = 'import {{ answer }} from "testing";\nimport "./{0}";\nexport default ({{ action }}) => answer(action.input);\n'
SEEDING = Path(__file__).with_name("seed.js").read_text("utf-8")
#: Maximum number of cases of a folder, of runs of a case, and of days that it takes.
MAX_CASES, MAX_TIMES, MAX_DAYS = 2000, 100, 3660
#: Longest step of the clock: the node renews its lease in between.
STEP = timedelta(days=366)
#: Maximum number of values by key that a check sees.
MAX_KEYS = 1000
#: What a stage of tests does without: the check of sources at upload, which the run itself repeats.
SETTINGS: dict[str, Any] = {"check_scripts": False, "slots": 2}
_PLACE = re.compile(r"([\w./-]+\.test\.[jt]s):(\d+)(?::(\d+))?")
_FORMS: dict[str, Any] = {
    "script": str, "schedule": str, "now": Instant, "for": str, "input": Any, "seed": dict[str, list[dict[str, Any]]],
    "kv": dict[str, Any], "fetches": list[dict[str, Any]], "secrets": dict[str, str], "grants": list[str], "people": list[str],
    "times": int, "outcome": str,
}  # fmt: skip


@dataclass(slots=True)
class Case:
    """One case, and after its run its failures.

    Attributes:
        path: file of the test.
        index: its number in the file.
        failures: why it failed, with the line of the test or of the script; empty if it passed.
    """

    path: Path
    index: int
    name: str
    options: dict[str, Any]
    begin: datetime = BEGIN
    length: timedelta = timedelta()
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Return the recordings' key in messages: file and name."""
        return f"{self.path.name}: {self.name}"

    def refuse(self, error: InputError | Unavailable) -> None:
        """Add an error of the engine as a failure of the case."""
        self.fail(f"{error.what}: {error.why}" if error.why else error.what, fix=error.fix)

    def fail(self, message: str, **more: Any) -> None:
        """Add a failure of the case with its message, and further facts such as the line."""
        self.failures.append({"message": message} | more)


@dataclass(slots=True)
class TestRun:
    """All cases of a folder, and the errors of files that could not be read."""

    __test__ = False
    cases: list[Case] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    received: dict[Path, list[dict[str, Any]]] = field(default_factory=dict)


def recordings_of(test: Path) -> Path:
    """Return the file with the recorded responses of a test."""
    return test.with_name(_tested(test) + ".fetches.json")


def _tested(test: Path) -> str:
    """Return the name of the script that a test file is for."""
    return test.name.removesuffix(test.suffix).removesuffix(".test")


def read_recordings(path: Path) -> list[dict[str, Any]]:
    """Read a file of recorded responses; raises OSError, or ValueError or InputError for what is none."""
    return check_recordings(prescan.decode(script_files.regular(path, MAX_BYTES)))


def run_tests(
    folder: ScriptFolder, wanted: str | None = None, *, live: bool = False, functions: Iterable[PlatformFunction] = ()
) -> TestRun:
    """Run the cases with ``wanted`` in their names; ``live``: send requests without a recording, and keep the responses.

    Args:
        functions: what scripts may call of a platform; a call is a request.
    """
    from lodger.engine.core.settings import load

    done = TestRun(findings=[each for each in folder.findings if each.level == "error"])
    way_out = Recordings(load(), live=live)
    with (
        tempfile.TemporaryDirectory(prefix="lodger-test-") as place,
        Stage(
            at=datetime(1971, 1, 1, tzinfo=UTC), way_out=way_out, **SETTINGS, secret_keys=Path(place, "keys")
        ) as stage,
    ):
        if any("secrets" in path.read_text(encoding="utf-8", errors="replace") for path in folder.tests):
            Keyring(Path(place, "keys")).add()
        for function in functions:
            stage.engine.put_function(function)
        stage.engine.tenants.create(TENANT)
        stage.engine.grants.keep(TENANT, [])
        for number, path in enumerate(folder.tests):
            _collect(stage, folder, path, f"test-{number}", done)
        chosen = [case for case in done.cases if wanted is None or wanted.lower() in case.key.lower()]
        done.cases = chosen
        for case in chosen:
            _read_options(case)
        _Play(stage, folder, way_out, done).play()
    return done


def _collect(stage: Stage, folder: ScriptFolder, path: Path, name: str, done: TestRun) -> None:
    """Run a test's file to collect its cases, or the error that keeps it from being read."""
    try:
        source = path.read_text(encoding="utf-8-sig")
        own = {path.name: source} | script_files.with_imports(folder.path, {path.name: source})
        if wrong := next(faults(own), None):
            shown = f"{wrong.name}: {wrong.message}"
            file = wrong.file or path.name
            done.findings.append(Finding("error", file, "test_invalid", shown, "", wrong.line, wrong.column))
            return
        stage.engine.scripts.put(TENANT, name, {"main.js": MAIN.format(path.name)} | own)
    except (OSError, UnicodeDecodeError, InputError) as error:
        done.findings.append(Finding("error", path.name, "test_invalid", str(error)))
        return
    ended = _once(stage, TENANT, name, None)
    if ended.outcome != "ok" or not isinstance(ended.result, list):
        why = ended.error
        shown = f"{why.name}: {why.message}" if why else "the file has no cases"
        line, column = (why.line, why.column) if why and why.file == path.name else (None, None)
        done.findings.append(Finding("error", path.name, "test_invalid", shown, "", line, column))
        return
    for index, each in enumerate(ended.result[: MAX_CASES - len(done.cases)]):
        said = each if isinstance(each, dict) else {}
        options = said.get("options")
        done.cases.append(Case(path, index, str(said.get("name"))[:200], options if isinstance(options, dict) else {}))
    if not ended.result:
        advice = "call test(name, options, check)"
        done.findings.append(Finding("warning", path.name, "test_empty", "the file has no case", advice))


def _once(stage: Stage, tenant_id: str, script: str, params: Any) -> Action:
    """Run a script once; return its action."""
    made = stage.engine.run_at(tenant_id, script, stage.now, params)
    stage.settle()
    return stage.engine.actions.get(tenant_id, made.id)


def _read_options(case: Case) -> None:
    """Check a case's options; a wrong one is a failure of the case."""
    for name, value in case.options.items():
        if name not in _FORMS:
            case.fail(f"there is no option {name!r}", fix=nearest(name, _FORMS))
            continue
        try:
            case.options[name] = from_jsonable(_FORMS[name], value)
        except ValidationError as error:
            case.fail(f"option {name}: {error.errors(include_url=False)[0]['msg']}")
    if case.failures:
        return
    case.begin = case.options.get("now", BEGIN)
    try:
        if "for" in case.options:
            case.length = timedelta(microseconds=parse_duration(case.options["for"]))
        check_recordings(case.options.get("fetches", []))
    except InputError as error:
        case.refuse(error)
    except OverflowError as error:
        case.fail(str(error))
    if case.length > timedelta(days=MAX_DAYS) or not 1 <= case.options.get("times", 1) <= MAX_TIMES:
        case.fail(f"a case takes at most {MAX_DAYS} days and {MAX_TIMES} runs")
    first, end = datetime(1971, 1, 1, tzinfo=UTC), datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC)
    if not first <= case.begin < end or case.length > end - case.begin:
        case.fail(f"options now and for: a script's clock has the years 1971 to {LAST_YEAR} here")


class _Play:
    """One passage of fake time over all cases of a folder, each in a tenant of its own."""

    def __init__(self, stage: Stage, folder: ScriptFolder, way_out: Recordings, done: TestRun) -> None:
        self._stage = stage
        self._folder = folder
        self._way_out = way_out
        self._done = done

    def play(self) -> None:
        """Play the cases in the order of their times, and compare the results."""
        cases = [case for case in self._done.cases if not case.failures]
        events = [(case.begin, 1, number, case) for number, case in enumerate(cases)]
        events += [(case.begin + case.length, 0, number, case) for number, case in enumerate(cases) if case.length]
        for instant, begins, number, case in sorted(events, key=lambda each: each[:3]):
            while self._stage.now < instant:
                self._stage.advance_to(min(instant, self._stage.now + STEP))
            tenant_id = f"case-{number}"
            try:
                if begins:
                    self._begin(case, tenant_id)
                if not begins or not case.length:
                    self._judge(case, tenant_id)
            except (InputError, Unavailable) as error:
                case.refuse(error)

    def _begin(self, case: Case, tenant_id: str) -> None:
        """Make the case's tenant with its data, and run its script or start its schedule."""
        engine, options, dev = self._stage.engine, case.options, self._folder.file.dev
        engine.tenants.create(
            tenant_id,
            grants=[*dev.grants, *options.get("grants", [])],
            people=[*dev.people, *options.get("people", [])],
        )
        recordings = [*options.get("fetches", []), *self._recorded(case)]
        hosts = {urlsplit(each["url"]).netloc for each in recordings if each["url"].startswith("https://")}
        for name, value in options.get("secrets", {}).items():
            engine.secrets.put(tenant_id, name, value, hosts=sorted(hosts), grant=True)
        if options.get("seed") or options.get("kv"):
            engine.scripts.put(tenant_id, SEED, SEEDING)
            given = {"rows": options.get("seed", {}), "kv": options.get("kv", {})}
            ended = _once(self._stage, tenant_id, SEED, given)
            if ended.outcome != "ok":
                raise InputError("seed_refused", reason=ended.error.message if ended.error else ended.outcome)
        self._way_out.give(tenant_id, recordings)
        received = len(self._way_out.received)
        self._run(case, tenant_id)
        self._done.received.setdefault(case.path, []).extend(self._way_out.received[received:])

    def _recorded(self, case: Case) -> list[dict[str, Any]]:
        """Read the recorded responses of a case."""
        path = recordings_of(case.path)
        try:
            return read_recordings(path)
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise InputError("recording_invalid.file", name=path.name, reason=error) from None

    def _run(self, case: Case, tenant_id: str) -> None:
        """Run one case: its script once, or its schedule for the time that it asks for."""
        stage, options = self._stage, case.options
        schedule = options.get("schedule")
        if schedule is not None:
            fields = self._folder.file.schedules.get(schedule)
            if fields is None:
                raise InputError(
                    "schedule_unknown.folder", schedule=schedule, near=similar(schedule, self._folder.file.schedules)
                )
            self._store(tenant_id, script_names(fields))
            if refused := store_schedule(stage.engine, tenant_id, self._folder, schedule, fields):
                raise InputError.told(refused[0].code, refused[0].message, fix=refused[0].fix)
            if case.length:
                return
        script = options.get("script", _tested(case.path))
        if schedule is None:
            granted = [
                each[4:] for each in (*self._folder.file.dev.grants, *options.get("grants", [])) if each[:4] == "run:"
            ]
            later = (
                self._folder.scripts if "*" in granted else [each for each in granted if each in self._folder.scripts]
            )
            self._store(tenant_id, [*dict.fromkeys([script, *later])])
        for _ in range(options.get("times", 1)):
            if schedule is None:
                _once(stage, tenant_id, script, options.get("input"))
            else:
                stage.engine.actions.run_now(tenant_id, schedule, params=options.get("input"))
                stage.settle()

    def _store(self, tenant_id: str, names: list[str]) -> None:
        """Store scripts of the folder, and those that they import."""
        for name in names:
            if name not in self._folder.scripts:
                raise InputError("script_unknown.folder", script=name, near=similar(name, self._folder.scripts))
        for script in self._folder.with_imports(names):
            if refused := store_script(self._stage.engine, tenant_id, self._folder, script):
                raise InputError.told(refused[0].code, refused[0].message, fix=refused[0].fix)

    def _judge(self, case: Case, tenant_id: str) -> None:
        """Compare the outcomes, and let the case's check look at the results."""
        stage = self._stage
        actions = [each for each in stage.actions(tenant_id) if each.script != SEED]
        later = [each for each in actions if each.requested_by and each.state == "ready"]
        actions = [each for each in actions if each.started_at or not each.requested_by]
        for each in later:
            stage.engine.actions.cancel(tenant_id, each.id)
        following = []
        for schedule in stage.engine.schedules.list(tenant_id):
            following = [zulu(slot) for slot in next_slots(stage.engine, schedule, after=stage.now)]
            stage.engine.schedules.delete(tenant_id, schedule.name)
        wanted = case.options.get("outcome", "ok")
        for each in actions:
            if each.outcome is not None and each.outcome != wanted:
                error = each.error
                place = {"file": error.file, "line": error.line, "column": error.column} if error else {}
                said = f": {error.name}: {error.message}" if error else ""
                case.fail(f"the run ended with {each.outcome}, not {wanted}{said}", script=each.script, **place)
                return
        if not actions:
            case.fail("nothing has run")
            return
        run = self._outcome(tenant_id, actions, following) | {"later": [_later_run(each) for each in later]}
        name = f"test-{self._folder.tests.index(case.path)}"
        ended = _once(stage, TENANT, name, {"index": case.index, "run": run})
        if ended.outcome != "ok":
            case.fail(f"the check ended with {ended.outcome}" + (f": {ended.error.message}" if ended.error else ""))
        elif isinstance(ended.result, dict):
            _note(case, ended.result)

    def _outcome(self, tenant_id: str, actions: list[Action], following: list[str]) -> dict[str, Any]:
        """Return the result of a case, which its test checks. ``following`` has the schedule's next slots."""
        stage, last = self._stage, actions[-1]
        with stage.engine.context.database.read() as connection:
            now_us = stage.engine.context.clock.now_us()
            values = kv_store.list_page(connection, tenant_id, "", "", "", MAX_KEYS, now_us)
        return {
            "outcome": last.outcome, "result": last.result, "error": to_jsonable(last.error),
            "logs": [
                {"level": line.level, "text": line.text}
                for each in actions for line in stage.engine.actions.logs(tenant_id, each.id)
            ],
            "mails": [each.payload for each in stage.sent(tenant_id) if each.kind == "mail"],
            "rows": {
                each.name: plain(stage.documents(tenant_id, each.name)) for each in stage.engine.collections.list(tenant_id)
            },
            "kv": {key: plain(json.loads(text)) for key, text in values},
            "fetches": self._way_out.sent.get(tenant_id, []),
            "runs": [
                {"slot": to_jsonable(each.slot) if each.slot else None, "outcome": each.outcome, "result": each.result}
                for each in actions
            ],
            "next": following,
        }  # fmt: skip


def _later_run(action: Action) -> dict[str, Any]:
    """Return a later run that a script requested, as a check sees it."""
    key = later_runs.key_of(action.request_key)
    return {"script": action.script, "at": to_jsonable(action.due_at), "input": action.params, "key": key}


def plain(value: Any) -> Any:
    """Return a stored value as a check sees it: instants as text with milliseconds, bytes in base64."""
    return strict_json.plain(value, lambda text: f"{text[:23]}Z")


def _note(case: Case, verdict: Mapping[str, Any]) -> None:
    """Add the failure that a check reported to its case, with the line of the test."""
    place: dict[str, Any] = {}
    for file, line, column in _PLACE.findall(str(verdict.get("stack", ""))):
        if file.endswith(case.path.name):
            place = {"file": case.path.name, "line": int(line), "column": int(column) if column else None}
            break
    name = verdict.get("name")
    message = str(verdict.get("message", "")) if name == "ExpectationFailed" else f"{name}: {verdict.get('message')}"
    values = {key: str(verdict[key]) for key in ("expected", "actual") if verdict.get(key) is not None}
    case.fail(message, **place, **values)
