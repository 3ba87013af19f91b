"""Temporal beside the host: offsets against zoneinfo, zones of the far future, values in rows, limits, the files that the build fetches.

Its values are checked in ``tests/conformance/web_platform/temporal_*.js``.
"""

import json
import random
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lodger.engine.recurrence.calendar.zone_tables import REPEATS_FROM_S, zone_table
from lodger.engine.recurrence.calendar.zones import python_zone, zone, zone_names
from lodger.engine.trials.trial import try_script
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.runtimes.js.artefact import RealmUnavailable, read_sources
from lodger.stdlib import npm_packages

LOCAL_TIMES = """
return CASES.map(([name, ms]) => {
  const at = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(name);
  return [at.timeZoneId, at.toPlainDateTime().toString(), at.toPlainDateTime().toZonedDateTime(name).epochMilliseconds];
});
"""
ROWS = """
export default async ({ db }) => {
  const at = Temporal.Instant.from("2026-11-25T22:00:00.123456789Z");
  const day = Temporal.PlainDate.from("2026-11-25");
  const span = Temporal.Duration.from("PT1H");
  await db.visits.insert({ key: "a", at, local: at.toZonedDateTimeISO("Asia/Tokyo"), day, time: Temporal.PlainTime.from("09:30"), span });
  await db.visits.insert({ key: "b", at: at.add({ hours: 1 }) });
  const insert = async (row) => db.visits.insert(row);
  const far = await insert({ key: "c", at: Temporal.Instant.from("+010000-01-01T00:00Z") }).catch((error) => error.name);
  const rows = await db.visits.find({ at: { lte: at } });
  console.log(rows.length, at, { day, span });
  return [rows[0].at instanceof Instant, rows[0], Instant.from(at).add(Temporal.Duration.from({ days: 1, hours: 2 })), far];
};
"""


def answer(name: str, given: Any) -> tuple[bool, Any]:
    """Answer as the engine does."""
    assert name == "time.zone"
    return True, zone_table(given["name"], far=given["far"])


def test_local_times_are_those_of_zoneinfo(run) -> None:
    draw = random.Random(7)
    names = draw.sample(sorted(zone_names()), 50)
    cases = [(name, draw.randrange(-62_000_000_000, 250_000_000_000) * 1000) for name in names for _ in range(4)]
    wanted = []
    for name, ms in cases:
        local = datetime.fromtimestamp(ms // 1000, UTC).astimezone(python_zone(name)).replace(tzinfo=None)
        back = local.replace(tzinfo=python_zone(name)).astimezone(UTC)  # the first of two equal times, as Temporal
        wanted.append([name, f"{local.isoformat()}", int(back.timestamp()) * 1000])
    done = run(LOCAL_TIMES.replace("CASES", json.dumps(cases)), answer=answer, cpu_ms=20_000)
    assert [each for each in zip(done.result, wanted, strict=True) if each[0] != each[1]] == []
    assert len(done.calls) <= 2 * len(names), "a zone is asked for once, and once more for far times"


@pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)
def test_now_is_the_pretended_time_in_the_zone_of_the_schedule(run) -> None:
    source = (
        "const { Now } = Temporal; return [Now.instant(), Now.zonedDateTimeISO(), Now.plainDateISO('America/Lima')]"
    )
    context = {"action": {"timezone": "Asia/Tokyo"}}
    instant, zoned, day = run(source, context=context, now_us=1_700_000_000_123_456, answer=answer).result
    assert re.fullmatch(r"2023-11-14T22:13:2\d(\.\d{1,3})?Z", instant), instant
    assert re.fullmatch(r"2023-11-15T07:13:2\d(\.\d{1,3})?\+09:00\[Asia/Tokyo\]", zoned), zoned
    assert day == "2023-11-14"


def test_every_zone_repeats_from_2100_on() -> None:
    cycle = 146_097 * 86_400
    for name in random.Random(8).sample(sorted(zone_names()), 20):
        table = zone_table(name.upper(), far=True)
        assert table is not None
        assert table["name"] == name
        assert len(table["offsets"]) == len(table["starts"]) + 1
        assert zone(name).stored_to < REPEATS_FROM_S
        for start in table["starts"][:3]:
            for second in (start - 1, start):
                assert zone(name).offset(second) == zone(name).offset(second + cycle), (name, second)
    for unknown in ("", "Mars/Phobos", "../UTC", "x" * 100_000):
        assert zone_table(unknown, far=False) is None


@pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"])
def test_values_in_rows_filters_and_log_lines(runtime: str) -> None:
    ended = try_script(ROWS, None, Limits(), runtime=runtime)
    assert ended.finished.outcome is Outcome.OK, ended.finished.error
    is_instant, row, moved, far = json.loads(ended.finished.result or "null")
    assert (is_instant, moved, far) == (True, "2026-11-27T00:00:00.123456789Z", "RangeError")
    assert {name: row[name] for name in ("at", "local", "day", "time", "span")} == {
        "at": "2026-11-25T22:00:00.123456Z", "local": "2026-11-25T22:00:00.123456Z", "day": "2026-11-25",
        "time": "09:30:00", "span": "PT1H",
    }  # fmt: skip
    (line,) = ended.finished.logs
    assert line.text == "1 2026-11-25T22:00:00.123456789Z { day: 2026-11-25, span: PT1H }"


def test_a_loop_over_zones_ends_at_the_limit_of_calls() -> None:
    source = """
    export default () => {
      for (let number = 0; number < 1e5; number++) {
        try { Temporal.Now.zonedDateTimeISO("Nowhere/Z" + number) } catch {}
      }
    }
    """
    assert try_script(source, None, Limits()).finished.outcome is Outcome.CALL_LIMIT


def test_a_file_that_is_not_the_pinned_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "stdlib"
    copy.mkdir()
    shutil.copy(npm_packages.FOLDER / "npm_packages.toml", copy)
    shutil.copytree(npm_packages.FOLDER / "npm", copy / "npm")
    npm_packages.check(copy)
    monkeypatch.setattr(npm_packages, "FOLDER", copy)
    file = copy / "npm" / "temporal-polyfill" / "full" / "global.js"
    file.write_text(file.read_text() + " ")
    with pytest.raises(RealmUnavailable) as failure:
        read_sources()
    assert (failure.value.code, "not the file of temporal-polyfill" in failure.value.why) == ("package_missing", True)
    file.unlink()
    with pytest.raises(RealmUnavailable) as failure:
        read_sources()
    assert failure.value.why.endswith("is missing")


def test_large_amounts_are_added_exactly() -> None:
    source = """
    const all = [{ microseconds: 9007199254740991 }, { microseconds: 23456789012345680 }, { nanoseconds: 9007199254740991 },
      { milliseconds: 1, microseconds: 9007199254740991, nanoseconds: 9007199254740991 }];
    return all.map((each) => ["add", "subtract"].map((way) =>
      String(Instant.fromEpochNanoseconds(1234567890123456789n)[way](each).epochNanoseconds)));
    """
    start, large = 1234567890123456789, 2**53 - 1
    moved = [large * 1000, 23456789012345680 * 1000, large, 10**6 + large * 1001]
    found = json.loads(try_script(source, None, Limits()).finished.result or "null")
    assert found == [[str(start + each), str(start - each)] for each in moved]
